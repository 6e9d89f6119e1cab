"""What a person does with kubectl, and what must appear.

The same script runs against the facade and against a real API server: where ``real`` is not given, both must print
the same.
"""

from __future__ import annotations

from tests.kubectl.step import Scene, Step

VOLUME = """
apiVersion: storage.deckhouse.io/v1alpha1
kind: ReplicatedVolume
metadata:
  name: NAME
  labels: {tier: TIER}
spec:
  replicatedStorageClassName: fast
  size: SIZE
"""


def volume(name: str, size: str = "10Gi", tier: str = "gold") -> str:
    return VOLUME.replace("NAME", name).replace("SIZE", size).replace("TIER", tier)


def in_a_list(manifest: str) -> str:
    """As ``kubectl get -o yaml`` prints several objects."""
    return "apiVersion: v1\nkind: List\nitems:\n-" + manifest.strip().replace("\n", "\n  ").join((" ", "\n"))


def create(name: str, size: str = "10Gi", tier: str = "gold") -> Step:
    return Step(
        "create -f -",
        stdin=volume(name, size, tier),
        prints=f"replicatedvolume.storage.deckhouse.io/{name} created",
    )


def delete(*names: str) -> Step:
    gone = "\n".join(f'replicatedvolume.storage.deckhouse.io "{name}" deleted' for name in names)
    return Step(f"delete rv {' '.join(names)}", prints=gone)


SERVER = Scene(
    "the server says what it is and what it has",
    (
        Step("version", among="Client Version: v1.* \n Server Version: v1.36.*"),
        Step("api-versions", among="longhorn.io/v1beta2 \n storage.deckhouse.io/v1alpha1 \n v1"),
        Step(
            "api-resources --api-group=storage.deckhouse.io",
            prints="""
            NAME  SHORTNAMES  APIVERSION  NAMESPACED  KIND
            drbdresourceoperations  drbdrop  storage.deckhouse.io/v1alpha1  false  DRBDResourceOperation
            lvmlogicalvolumes  llv  storage.deckhouse.io/v1alpha1  false  LVMLogicalVolume
            lvmvolumegroups  lvg  storage.deckhouse.io/v1alpha1  false  LVMVolumeGroup
            replicatedstorageclasses  rsc  storage.deckhouse.io/v1alpha1  false  ReplicatedStorageClass
            replicatedstoragepools  rsp  storage.deckhouse.io/v1alpha1  false  ReplicatedStoragePool
            replicatedvolumeattachments  rva  storage.deckhouse.io/v1alpha1  false  ReplicatedVolumeAttachment
            replicatedvolumereplicas  rvr  storage.deckhouse.io/v1alpha1  false  ReplicatedVolumeReplica
            replicatedvolumes  rv  storage.deckhouse.io/v1alpha1  false  ReplicatedVolume
            """,
        ),
        Step(
            "api-resources --categories=maintenance -o name",
            among="brokerledgers.maintenance.quorate.io \n permissions.maintenance.quorate.io",
        ),
        Step(
            "api-resources --namespaced=true -o name", among="leases.coordination.k8s.io \n diskschedules.longhorn.io"
        ),
        Step("auth whoami -o jsonpath={.status.userInfo.username}", prints="quorate:loopback", real=False),
        Step("auth can-i create rv", prints="yes", complains="Warning: * is not namespace scoped *"),
        Step("get --raw /healthz", prints="ok"),
        Step(
            "wait clusterconfig/cluster --for=condition=Applied --timeout=20s",
            prints="clusterconfig.quorate.io/cluster condition met",
            real=False,  # a controller at work: there is none on the bare API server
        ),
        Step("get nothing", code=1, complains='error: the server doesn\'t have a resource type "nothing"'),
    ),
)

EXPLAIN = Scene(
    "every field explains itself",
    (
        Step(
            "explain rv",
            among="""
            GROUP: storage.deckhouse.io
            KIND: ReplicatedVolume
            VERSION: v1alpha1
            A block device with copies on several nodes.
            metadata <ObjectMeta>
            spec <Object> -required-
            status <Object>
            """,
        ),
        Step("explain rv.spec.publishOn", among="FIELD: publishOn <[]string> \n Nodes on which the volume is to be *"),
        Step("explain rv.metadata.labels", among="FIELD: labels <map[string]string>"),
        Step("explain rv.status.conditions.reason", among="FIELD: reason <string>"),
        Step(
            "explain rv.spec --recursive",
            among="publishOn <[]string> \n replicatedStorageClassName <string> -required- \n size <*> -required-",
        ),
        Step("explain node.spec", among="unschedulable <boolean>"),
        Step(
            "explain rv.spec.nothing",
            code=1,
            among="KIND: ReplicatedVolume",
            complains='error: field "nothing" does not exist',
        ),
    ),
)

GET = Scene(
    "get shows objects in every form",
    (
        create("get-a", "10Gi"),
        create("get-b", "20Gi", "iron"),
        Step(
            "get rv get-a",
            prints="""
            NAME    PHASE   READY   RESILIENT   LAYOUT   SIZE   PUBLISHED   AGE
            get-a                                        10Gi               *s
            """,
        ),
        Step(
            "get replicatedvolumes.storage.deckhouse.io get-b -o wide",
            prints="""
            NAME    PHASE   READY   RESILIENT   LAYOUT   SIZE   PUBLISHED   CLASS   MESSAGE   AGE
            get-b                                        20Gi               fast              *s
            """,
        ),
        Step("get rv get-a -o yaml", among="apiVersion: storage.deckhouse.io/v1alpha1 \n name: get-a \n size: 10Gi"),
        Step("get rv get-a -o json", among='"kind": "ReplicatedVolume", \n "size": "10Gi"'),
        Step("get rv get-a -o jsonpath={.spec.size}", prints="10Gi"),
        Step("get rv -o name", among="*.storage.deckhouse.io/get-a \n *.storage.deckhouse.io/get-b"),
        Step(
            "get rv get-a get-b -o custom-columns=NAME:.metadata.name,SIZE:.spec.size",
            prints="NAME SIZE \n get-a 10Gi \n get-b 20Gi",
        ),
        Step("get rv -l tier=iron --no-headers -o custom-columns=:.metadata.name", among="get-b"),
        Step("get rv -l 'tier in (gold),!x' -o name", among="*/get-a"),
        Step("get rv -l tier=none", complains="No resources found"),
        Step(
            "get rv --field-selector spec.replicatedStorageClassName=fast,metadata.name=get-b -o name", prints="*/get-b"
        ),
        Step("get rv --field-selector spec.size=1", code=1, complains="*field label not supported: spec.size"),
        Step("get rv -l a=b=c", code=1, complains="*(BadRequest)*"),
        Step(
            "get rv get-a get-b --sort-by=.spec.size --no-headers=true -o custom-columns=:.metadata.name",
            prints="get-a \n get-b",
        ),
        Step("get rv --chunk-size=1 -o name", among="*/get-a \n */get-b"),
        Step("get storage -o name", among="replicatedvolume.storage.deckhouse.io/get-a"),
        Step("get rv nothing", code=1, complains='*(NotFound): replicatedvolumes.storage.deckhouse.io "nothing" not *'),
        Step("get rv nothing --ignore-not-found"),
        Step("get rv get-a --show-labels --no-headers", prints="get-a 10Gi *s tier=gold"),
        Step("get rv get-a --subresource=status -o jsonpath={.metadata.name}", prints="get-a"),
        delete("get-a", "get-b"),
    ),
)

NAMESPACES = Scene(
    "namespaced objects live in their namespaces",
    (
        Step("create namespace ns-a", prints="namespace/ns-a created"),
        Step("get ns ns-a", prints="NAME STATUS AGE \n ns-a Active *s"),
        Step("create -f {dir}/image.yaml", prints="backingimage.longhorn.io/image created"),
        Step("get lhbi", complains="No resources found in default namespace."),
        Step("get lhbi -n ns-a -o name", prints="backingimage.longhorn.io/image"),
        Step(
            "get lhbi -A",
            prints="""
            NAMESPACE   NAME    READY   COPIES   WANTED   SIZE   AGE
            ns-a        image                    2               *s
            """,
        ),
        Step(
            "create -f - -n nowhere",
            stdin="apiVersion: longhorn.io/v1beta2\nkind: BackingImage\nmetadata: {name: x}\nspec: {}",
            code=1,
            complains='*(NotFound): error when creating "STDIN": namespaces "nowhere" not found',
        ),
        Step("delete lhbi image -n ns-a", prints='backingimage.longhorn.io "image" deleted from ns-a namespace'),
        Step("delete namespace ns-a --wait=false", prints='namespace "ns-a" deleted'),
    ),
    {
        "image.yaml": """
apiVersion: longhorn.io/v1beta2
kind: BackingImage
metadata: {name: image, namespace: ns-a}
spec: {minNumberOfCopies: 2}
"""
    },
)

WATCH = Scene(
    "a watch shows changes as they happen",
    (
        create("watched"),
        Step(
            "get rv watched -w",
            endless=True,
            first=2,
            meanwhile=(
                Step(
                    'patch rv watched --type=merge -p \'{"spec":{"size":"11Gi"}}\'',
                    prints="replicatedvolume.storage.deckhouse.io/watched patched",
                ),
                delete("watched"),
            ),
            prints="""
            NAME      PHASE   READY   RESILIENT   LAYOUT   SIZE   PUBLISHED   AGE
            watched                                        10Gi               *s
            watched                                        11Gi               *s
            watched                                        11Gi               *s
            """,
        ),
    ),
)

EVENT = """
apiVersion: v1
kind: Event
metadata: {name: told.1, namespace: default}
involvedObject:
  apiVersion: storage.deckhouse.io/v1alpha1
  kind: ReplicatedVolume
  name: told
  uid: "{uid}"
type: Normal
reason: Formed
message: it was formed
source: {component: quorate}
reportingComponent: quorate
count: 1
firstTimestamp: "2026-01-01T00:00:00Z"
lastTimestamp: "2026-01-01T00:00:00Z"
"""

DESCRIBE = Scene(
    "describe and events tell an object's story",
    (
        create("told"),
        Step("get rv told -o jsonpath={.metadata.uid}", prints="*-*-*-*-*", keeps="uid"),
        Step("create -f -", stdin=EVENT, prints="event/told.1 created"),
        Step(
            "describe rv told",
            among="""
            Name: told
            Labels: tier=gold
            Kind: ReplicatedVolume
            Replicated Storage Class Name: fast
            Size: 10Gi
            Events:
            Type Reason Age From Message
            Normal Formed * quorate it was formed
            """,
        ),
        Step(
            "events --for replicatedvolume.storage.deckhouse.io/told",
            prints="""
            LAST SEEN   TYPE     REASON   OBJECT                    MESSAGE
            *           Normal   Formed   ReplicatedVolume/told   it was formed
            """,
        ),
        Step(
            "events --types=Warning --for replicatedvolume.storage.deckhouse.io/told",
            complains="No events found in default namespace.",
        ),
        Step("get events --field-selector involvedObject.name=told,reason=Formed -o name", prints="event/told.1"),
        Step("delete event told.1", prints='event "told.1" deleted from default namespace'),
        delete("told"),
    ),
)

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
            complains='The ReplicatedVolume "odd" is invalid: spec.size: Invalid value: "1Gi": a volume cannot shrink',
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

SCENES = (
    SERVER,
    EXPLAIN,
    GET,
    NAMESPACES,
    WATCH,
    DESCRIBE,
    EDIT,
    APPLY,
    PATCH,
    VALIDATION,
    WAIT,
    DELETE,
    NODES,
)
