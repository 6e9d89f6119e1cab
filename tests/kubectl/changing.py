"""What a person changes with kubectl, and what must come of it."""

from __future__ import annotations

from tests.kubectl.manifests import create, delete, in_a_list, volume
from tests.kubectl.step import Scene, Step

EDIT = Scene(
    "edit and replace write what a person changed",
    (
        create("edited"),
        Step(
            "edit rv edited",
            editor="sed -i s/10Gi/12Gi/",
            prints="replicatedvolume.storage.deckhouse.io/edited edited",
        ),
        Step("get rv edited -o jsonpath={.spec.size}", prints="12Gi"),
        Step("edit rv edited", editor="true", complains="Edit cancelled, no changes made."),
        Step(
            "edit rv edited",
            editor="sed -i s/12Gi/1Gi/",
            code=1,
            complains='error: * "edited" is invalid \n error: Edit cancelled, no valid changes were saved.',
        ),
        Step("get rv edited -o json", among='"size": "12Gi"', keeps="json"),
        Step("replace -f -", stdin="{json}", prints="replicatedvolume.storage.deckhouse.io/edited replaced"),
        Step("label rv edited tier=iron --overwrite", prints="replicatedvolume.storage.deckhouse.io/edited labeled"),
        Step("replace -f -", stdin="{json}", code=1, complains="*(Conflict): * the object has been modified; *"),
        Step(
            "replace --force -f {dir}/edited.yaml",
            prints="""
            replicatedvolume.storage.deckhouse.io "edited" deleted
            replicatedvolume.storage.deckhouse.io/edited replaced
            """,
        ),
        Step("get rv edited -o jsonpath={.spec.size}", prints="15Gi"),
        delete("edited"),
    ),
    {"edited.yaml": volume("edited", "15Gi")},
)

APPLY = Scene(
    "apply makes an object be as its manifest says",
    (
        Step("apply -f {dir}/small.yaml", prints="replicatedvolume.storage.deckhouse.io/applied created"),
        Step("apply -f {dir}/small.yaml", prints="replicatedvolume.storage.deckhouse.io/applied unchanged"),
        Step("diff -f {dir}/large.yaml", code=1, among="- size: 10Gi \n + size: 20Gi"),
        Step(
            "apply -f {dir}/large.yaml --dry-run=server",
            prints="replicatedvolume.storage.deckhouse.io/applied configured (server dry run)",
        ),
        Step("get rv applied -o jsonpath={.spec.size}", prints="10Gi"),
        Step("apply -f {dir}/large.yaml", prints="replicatedvolume.storage.deckhouse.io/applied configured"),
        Step("diff -f {dir}/large.yaml"),
        Step("get rv applied -o jsonpath={.spec.size}/{.metadata.generation}", prints="20Gi/2"),
        Step("create -f {dir}/large.yaml", code=1, complains='*(AlreadyExists): *"applied" already exists'),
        Step(
            "apply -f {dir}/large.yaml --server-side",
            code=1,
            complains="*server-side apply is not supported by Quorate's embedded engine*without --server-side*",
            real=False,
        ),
        Step(
            "delete -f {dir}/large.yaml",
            prints='replicatedvolume.storage.deckhouse.io "applied" deleted',
        ),
        Step("apply -f {dir}/list.yaml", prints="replicatedvolume.storage.deckhouse.io/listed created"),
        Step(
            "apply -f {dir}/misspelt.yaml",
            code=1,
            complains='*unknown field "*sise"*',
        ),
        delete("listed"),
    ),
    {
        "small.yaml": volume("applied"),
        "large.yaml": volume("applied", "20Gi"),
        "list.yaml": in_a_list(volume("listed")),
        "misspelt.yaml": in_a_list(volume("listed").replace("size:", "sise: 1Gi\n  size:")),
    },
)

PATCH = Scene(
    "patches change what they name",
    (
        create("patched"),
        Step(
            'patch rv patched --type=merge -p \'{"spec":{"publishOn":["n1"]}}\'',
            prints="replicatedvolume.storage.deckhouse.io/patched patched",
        ),
        Step(
            "patch rv patched --type=json -p "
            '\'[{"op":"test","path":"/spec/size","value":"10Gi"},{"op":"replace","path":"/spec/size","value":"13Gi"}]\'',
            prints="replicatedvolume.storage.deckhouse.io/patched patched",
        ),
        Step(
            'patch rv patched --type=json -p \'[{"op":"test","path":"/spec/size","value":"10Gi"}]\'',
            code=1,
            complains="The request is invalid: *",
        ),
        Step(
            "patch rv patched -p '{}'",
            code=1,
            complains="error: application/strategic-merge-patch+json is not supported by *",
        ),
        Step(
            'patch rv patched --subresource=status --type=merge -p \'{"status":{"phase":"Ready"}}\'',
            prints="replicatedvolume.storage.deckhouse.io/patched patched",
        ),
        Step(
            'patch rv patched --type=merge -p \'{"status":{"phase":"Degraded"}}\'',
            prints="replicatedvolume.storage.deckhouse.io/patched patched (no change)",
        ),
        Step("annotate rv patched note=hello", prints="replicatedvolume.storage.deckhouse.io/patched annotated"),
        Step("annotate rv patched note-", prints="replicatedvolume.storage.deckhouse.io/patched annotated"),
        Step("label rv patched tier=iron", code=1, complains="error: 'tier' already has a value (gold), and --overw*"),
        Step("label rv patched tier=iron --overwrite", prints="replicatedvolume.storage.deckhouse.io/patched labeled"),
        Step("label rv patched tier-", prints="replicatedvolume.storage.deckhouse.io/patched unlabeled"),
        Step(
            "get rv patched -o jsonpath={.spec}{.status}{.metadata.generation}{.metadata.labels}",
            prints='{"publishOn":["n1"],"replicatedStorageClassName":"fast","size":"13Gi"}{"phase":"Ready"}3',
        ),
        delete("patched"),
    ),
)

VALIDATION = Scene(
    "what breaks a rule is refused with the field and the reason",
    (
        Step(
            "create -f {dir}/unknown.yaml",
            code=1,
            complains='*strict decoding error: unknown field "spec.colour"',
        ),
        Step(
            "create --validate=warn -f {dir}/unknown.yaml",
            prints="replicatedvolume.storage.deckhouse.io/odd created",
            complains='Warning: unknown field "spec.colour"',
        ),
        Step(
            "create -f {dir}/wrong.yaml",
            code=1,
            complains="""
            The ReplicatedVolume "wrong" is invalid:
            * spec.publishOn: Too many: 3: must have at most 2 items
            """,
        ),
        Step(
            'patch rv odd --type=merge -p \'{"spec":{"size":"1Gi"}}\'',
            code=1,
            complains='The ReplicatedVolume "odd" is invalid: spec.size: Invalid value: "1Gi": a volume cannot shrink*',
        ),
        Step("create -f {dir}/wrong.yaml --dry-run=client", prints="*/wrong created (dry run)"),
        Step("create -f - --dry-run=server", stdin=volume("tried"), prints="*/tried created (server dry run)"),
        Step("get rv tried", code=1, complains="*NotFound*"),
        Step(
            "create -f -", stdin=volume("Not_A_Name"), code=1, complains='*metadata.name: Invalid value: "Not_A_Name"*'
        ),
        delete("odd"),
    ),
    {
        "unknown.yaml": volume("odd") + "  colour: red\n",
        "wrong.yaml": volume("wrong") + "  publishOn: [a, b, c]\n",
    },
)

READY = (
    '{"status":{"phase":"Ready","conditions":[{"type":"Ready","status":"True","reason":"Formed","message":"",'
    '"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}'
)

WAIT = Scene(
    "wait returns when it has happened",
    (
        create("awaited"),
        Step(
            "wait rv/awaited --for=condition=Ready --timeout=20s",
            meanwhile=(
                Step(
                    f"patch rv awaited --subresource=status --type=merge -p '{READY}'",
                    prints="replicatedvolume.storage.deckhouse.io/awaited patched",
                ),
            ),
            prints="replicatedvolume.storage.deckhouse.io/awaited condition met",
        ),
        Step(
            "wait rv/awaited --for=jsonpath={.status.phase}=Ready --timeout=5s",
            prints="replicatedvolume.storage.deckhouse.io/awaited condition met",
        ),
        Step(
            "wait rv/awaited --for=condition=Resilient --timeout=1s",
            code=1,
            complains="error: timed out waiting for the condition on replicatedvolumes/awaited",
        ),
        Step(
            "wait rv/awaited --for=delete --timeout=20s",
            meanwhile=(delete("awaited"),),
            prints=None,  # nothing, if it was gone before the waiting began
        ),
    ),
)

DELETE = Scene(
    "a finalizer holds an object until it is removed",
    (
        create("held"),
        Step(
            'patch rv held --type=merge -p \'{"metadata":{"finalizers":["test.quorate.io/hold"]}}\'',
            prints="replicatedvolume.storage.deckhouse.io/held patched",
        ),
        Step("delete rv held --wait=false", prints='replicatedvolume.storage.deckhouse.io "held" deleted'),
        Step("get rv held -o jsonpath={.metadata.finalizers}", prints='["test.quorate.io/hold"]'),
        Step(
            "delete rv held --wait --timeout=20s",
            first=1,
            meanwhile=(
                Step(
                    'patch rv held --type=merge -p \'{"metadata":{"finalizers":null}}\'',
                    prints="replicatedvolume.storage.deckhouse.io/held patched",
                ),
            ),
            prints='replicatedvolume.storage.deckhouse.io "held" deleted',
        ),
        Step("get rv held --ignore-not-found"),
        create("swept-a", tier="sweep"),
        create("swept-b", tier="sweep"),
        Step(
            "delete rv -l tier=sweep",
            prints="""
            replicatedvolume.storage.deckhouse.io "swept-a" deleted
            replicatedvolume.storage.deckhouse.io "swept-b" deleted
            """,
        ),
        Step("delete rv -l tier=sweep", prints="No resources found"),
        Step("delete rv held", code=1, complains="*(NotFound)*"),
        create("last"),
        Step("delete --raw /apis/storage.deckhouse.io/v1alpha1/replicatedvolumes/last", prints='*"status":"Success"*'),
    ),
)

NODES = Scene(
    "core nodes are cordoned, labelled and edited as everywhere",
    (
        Step("create -f {dir}/node.yaml", prints="node/worker-1 created"),
        Step("label node worker-1 zone=a", prints="node/worker-1 labeled"),
        Step("annotate node worker-1 storage.deckhouse.io/evacuate=true", prints="node/worker-1 annotated"),
        Step("cordon worker-1", prints="node/worker-1 cordoned"),
        Step("cordon worker-1", prints="node/worker-1 already cordoned"),
        Step("get node worker-1 -o jsonpath={.spec.unschedulable}", prints="true"),
        Step("uncordon worker-1", prints="node/worker-1 uncordoned"),
        Step("taint node worker-1 maintenance=yes:NoSchedule", prints="node/worker-1 tainted"),
        Step("get node worker-1 -o jsonpath={.spec.taints[*].key}", among="*maintenance*"),
        Step("edit node worker-1", editor="sed -i s/zone:.a/zone:\\ b/", prints="node/worker-1 edited"),
        Step(
            "patch node worker-1 --subresource=status -p "
            '\'{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Ok"}]}}\'',
            prints="node/worker-1 patched",
        ),
        Step(
            "patch node worker-1 --subresource=status -p "
            '\'{"status":{"conditions":[{"type":"DiskPressure","status":"False"}]}}\'',
            prints="node/worker-1 patched",
        ),
        Step(
            "get node worker-1 -o jsonpath={.status.conditions[*].type}/{.metadata.labels.zone}",
            prints="DiskPressure Ready/b",
        ),
        Step(
            "apply -f {dir}/node.yaml",
            prints="node/worker-1 configured",
            complains="Warning: resource nodes/worker-1 *",
        ),
        Step("apply -f {dir}/node.yaml", prints="node/worker-1 unchanged"),
        Step("get nodes", prints="NAME READY UNSCHEDULABLE ADDRESS AGE \n worker-1 True *s", real=False),
        Step("describe node worker-1", among="Name: worker-1 \n Unschedulable: false"),
        Step("drain worker-1", prints="node/worker-1 cordoned \n node/worker-1 drained"),
        Step("delete node worker-1", prints='node "worker-1" deleted'),
    ),
    {"node.yaml": "apiVersion: v1\nkind: Node\nmetadata:\n  name: worker-1\n  labels: {rack: r1}\n"},
)
