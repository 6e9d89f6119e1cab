"""What a person looks at with kubectl, and what must appear."""

from __future__ import annotations

from tests.kubectl.manifests import create, delete
from tests.kubectl.step import Scene, Step

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
            get-a                                                           *s
            """,
        ),
        Step(
            "get replicatedvolumes.storage.deckhouse.io get-b -o wide",
            prints="""
            NAME    PHASE   READY   RESILIENT   LAYOUT   SIZE   PUBLISHED   ASKED   CLASS   MESSAGE   AGE
            get-b                                                           20Gi    fast              *s
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
        Step("get rv get-a --show-labels --no-headers", prints="get-a *s tier=gold"),
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
            watched                                                           *s
            watched                                                           *s
            watched                                                           *s
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
