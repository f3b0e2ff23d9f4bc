"""The defaults of built-in kinds, as far as operators commonly meet them.

They are written as structural schemas that allow any value. The same machinery applies
them as for custom kinds.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from fnop.interpreters.cluster.schema.schema import Schema, compile_schema

__all__ = ["defaults_of"]

Source = dict[str, Any]


def _object_schema(**properties: Any) -> Source:
    """An object with these defaults, or these parts, and anything else.

    A property is a default, or itself a schema made here.
    """
    return {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {
            name: part
            if isinstance(part, dict) and part.get("type") in ("object", "array")
            else {"x-kubernetes-preserve-unknown-fields": True, "default": part}
            for name, part in properties.items()
        },
    }


def _list_schema(items: Source) -> Source:
    return {"type": "array", "items": items, "nullable": True}


PROBE = _object_schema(
    timeoutSeconds=1,
    periodSeconds=10,
    successThreshold=1,
    failureThreshold=3,
    httpGet=_object_schema(path="/", scheme="HTTP"),
)
HOOK = _object_schema(httpGet=_object_schema(path="/", scheme="HTTP"))
FIELD = _object_schema(
    fieldRef=_object_schema(apiVersion="v1"),
    resourceFieldRef=_object_schema(divisor="0"),
)
CONTAINER = _object_schema(
    resources={},
    terminationMessagePath="/dev/termination-log",
    terminationMessagePolicy="File",
    ports=_list_schema(_object_schema(protocol="TCP")),
    env=_list_schema(_object_schema(valueFrom=FIELD)),
    livenessProbe=PROBE,
    readinessProbe=PROBE,
    startupProbe=PROBE,
    lifecycle=_object_schema(preStop=HOOK, postStart=HOOK),
)
# rw-r--r--
MODE = 0o644
DOWNWARD = _list_schema(FIELD)
# Sources that pods and persistent volumes share.
REMOTE: dict[str, Any] = {
    "azureDisk": _object_schema(
        cachingMode="ReadWrite", fsType="ext4", kind="Shared", readOnly=False
    ),
    "iscsi": _object_schema(iscsiInterface="default"),
    "rbd": _object_schema(pool="rbd", user="admin", keyring="/etc/ceph/keyring"),
    "scaleIO": _object_schema(storageMode="ThinProvisioned", fsType="xfs"),
}
VOLUME = _object_schema(
    configMap=_object_schema(defaultMode=MODE),
    secret=_object_schema(defaultMode=MODE),
    hostPath=_object_schema(type=""),
    downwardAPI=_object_schema(defaultMode=MODE, items=DOWNWARD),
    **REMOTE,
    projected=_object_schema(
        defaultMode=MODE,
        sources=_list_schema(
            _object_schema(
                serviceAccountToken=_object_schema(expirationSeconds=3600),
                downwardAPI=_object_schema(items=DOWNWARD),
            )
        ),
    ),
)
POD_DEFAULTS: dict[str, Any] = {
    "containers": _list_schema(CONTAINER),
    "initContainers": _list_schema(CONTAINER),
    "volumes": _list_schema(VOLUME),
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}
# Admission adds the last three to pods, but not to the templates of pods.
POD = _object_schema(
    **POD_DEFAULTS,
    enableServiceLinks=True,
    priority=0,
    preemptionPolicy="PreemptLowerPriority",
)
TEMPLATE = _object_schema(spec=_object_schema(**POD_DEFAULTS))
JOB = _object_schema(
    template=TEMPLATE, backoffLimit=6, completionMode="NonIndexed", suspend=False
)

CLAIM = _object_schema(volumeMode="Filesystem")
CLAIM_TEMPLATE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "spec": CLAIM,
    "status": {"phase": "Pending"},
}
PORTS = _list_schema(_object_schema(protocol="TCP"))
SPECS: dict[tuple[str, str], Source] = {
    ("", "pods"): POD,
    ("", "services"): _object_schema(
        type="ClusterIP",
        sessionAffinity="None",
        ports=_list_schema(_object_schema(protocol="TCP")),
    ),
    ("", "persistentvolumeclaims"): CLAIM,
    ("", "persistentvolumes"): _object_schema(
        volumeMode="Filesystem",
        persistentVolumeReclaimPolicy="Retain",
        hostPath=_object_schema(type=""),
        **REMOTE,
    ),
    ("", "replicationcontrollers"): _object_schema(replicas=1, template=TEMPLATE),
    ("apps", "deployments"): _object_schema(
        replicas=1,
        revisionHistoryLimit=10,
        progressDeadlineSeconds=600,
        template=TEMPLATE,
    ),
    ("apps", "replicasets"): _object_schema(replicas=1, template=TEMPLATE),
    ("apps", "statefulsets"): _object_schema(
        replicas=1,
        podManagementPolicy="OrderedReady",
        revisionHistoryLimit=10,
        template=TEMPLATE,
        volumeClaimTemplates=_list_schema(_object_schema(**CLAIM_TEMPLATE)),
    ),
    ("apps", "daemonsets"): _object_schema(
        revisionHistoryLimit=10,
        template=TEMPLATE,
    ),
    ("batch", "jobs"): JOB,
    ("batch", "cronjobs"): _object_schema(
        concurrencyPolicy="Allow",
        suspend=False,
        successfulJobsHistoryLimit=3,
        failedJobsHistoryLimit=1,
        jobTemplate=_object_schema(spec=_object_schema(template=TEMPLATE)),
    ),
    ("networking.k8s.io", "networkpolicies"): _object_schema(
        ingress=_list_schema(_object_schema(ports=PORTS)),
        egress=_list_schema(_object_schema(ports=PORTS)),
    ),
}


RULE = _object_schema(scope="*")
WEBHOOKS = _list_schema(
    _object_schema(
        failurePolicy="Fail",
        matchPolicy="Equivalent",
        namespaceSelector={},
        objectSelector={},
        timeoutSeconds=10,
        rules=_list_schema(RULE),
        clientConfig=_object_schema(service=_object_schema(port=443)),
    )
)
# Kinds whose defaults are outside of spec.
WHOLES: dict[tuple[str, str], Source] = {
    ("", "endpoints"): _object_schema(
        subsets=_list_schema(_object_schema(ports=PORTS))
    ),
    ("discovery.k8s.io", "endpointslices"): _object_schema(
        ports=_list_schema(_object_schema(name="", protocol="TCP"))
    ),
    ("storage.k8s.io", "storageclasses"): _object_schema(
        reclaimPolicy="Delete", volumeBindingMode="Immediate"
    ),
    ("", "podtemplates"): _object_schema(template=TEMPLATE),
    ("storage.k8s.io", "csidrivers"): _object_schema(
        spec=_object_schema(
            attachRequired=True,
            podInfoOnMount=False,
            storageCapacity=False,
            fsGroupPolicy="ReadWriteOnceWithFSType",
            volumeLifecycleModes=["Persistent"],
            requiresRepublish=False,
            seLinuxMount=False,
        )
    ),
    ("apiregistration.k8s.io", "apiservices"): _object_schema(
        spec=_object_schema(service=_object_schema(port=443))
    ),
    ("scheduling.k8s.io", "priorityclasses"): _object_schema(
        preemptionPolicy="PreemptLowerPriority"
    ),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): _object_schema(
        webhooks=WEBHOOKS
    ),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): _object_schema(
        webhooks=_list_schema(
            {
                **WEBHOOKS["items"],
                "properties": {
                    **WEBHOOKS["items"]["properties"],
                    **_object_schema(reinvocationPolicy="Never")["properties"],
                },
            }
        )
    ),
}


@cache
def defaults_of(resource: tuple[str, str]) -> Schema | None:
    """The defaults of a built-in kind, by its group and plural; None without any.

    A run meets few kinds, so each schema is compiled when it is first needed.
    """
    whole = WHOLES.get(resource)
    if whole is None and (spec := SPECS.get(resource)) is not None:
        whole = _object_schema(spec=spec)
    return compile_schema(whole)
