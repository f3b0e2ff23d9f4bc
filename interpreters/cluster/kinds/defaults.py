"""The defaults of built-in kinds, as far as operators commonly meet them.

They are written as structural schemas that allow any value. The same machinery applies
them as for custom kinds.
"""

from __future__ import annotations

from typing import Any

from fnop.interpreters.cluster.schema.schema import Schema, compile_schema

__all__ = ["SCHEMAS"]

Source = dict[str, Any]


def _open(**properties: Any) -> Source:
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


def _each(items: Source) -> Source:
    return {"type": "array", "items": items, "nullable": True}


PROBE = _open(
    timeoutSeconds=1,
    periodSeconds=10,
    successThreshold=1,
    failureThreshold=3,
    httpGet=_open(path="/", scheme="HTTP"),
)
HOOK = _open(httpGet=_open(path="/", scheme="HTTP"))
FIELD = _open(fieldRef=_open(apiVersion="v1"), resourceFieldRef=_open(divisor="0"))
CONTAINER = _open(
    resources={},
    terminationMessagePath="/dev/termination-log",
    terminationMessagePolicy="File",
    ports=_each(_open(protocol="TCP")),
    env=_each(_open(valueFrom=FIELD)),
    livenessProbe=PROBE,
    readinessProbe=PROBE,
    startupProbe=PROBE,
    lifecycle=_open(preStop=HOOK, postStart=HOOK),
)
# rw-r--r--
MODE = 0o644
DOWNWARD = _each(FIELD)
# Sources that pods and persistent volumes share.
REMOTE: dict[str, Any] = {
    "azureDisk": _open(
        cachingMode="ReadWrite", fsType="ext4", kind="Shared", readOnly=False
    ),
    "iscsi": _open(iscsiInterface="default"),
    "rbd": _open(pool="rbd", user="admin", keyring="/etc/ceph/keyring"),
    "scaleIO": _open(storageMode="ThinProvisioned", fsType="xfs"),
}
VOLUME = _open(
    configMap=_open(defaultMode=MODE),
    secret=_open(defaultMode=MODE),
    hostPath=_open(type=""),
    downwardAPI=_open(defaultMode=MODE, items=DOWNWARD),
    **REMOTE,
    projected=_open(
        defaultMode=MODE,
        sources=_each(
            _open(
                serviceAccountToken=_open(expirationSeconds=3600),
                downwardAPI=_open(items=DOWNWARD),
            )
        ),
    ),
)
POD_DEFAULTS: dict[str, Any] = {
    "containers": _each(CONTAINER),
    "initContainers": _each(CONTAINER),
    "volumes": _each(VOLUME),
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}
# Admission adds the last three to pods, but not to the templates of pods.
POD = _open(
    **POD_DEFAULTS,
    enableServiceLinks=True,
    priority=0,
    preemptionPolicy="PreemptLowerPriority",
)
TEMPLATE = _open(spec=_open(**POD_DEFAULTS))
JOB = _open(
    template=TEMPLATE, backoffLimit=6, completionMode="NonIndexed", suspend=False
)

CLAIM = _open(volumeMode="Filesystem")
CLAIM_TEMPLATE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "spec": CLAIM,
    "status": {"phase": "Pending"},
}
PORTS = _each(_open(protocol="TCP"))
SPECS: dict[tuple[str, str], Source] = {
    ("", "pods"): POD,
    ("", "services"): _open(
        type="ClusterIP",
        sessionAffinity="None",
        ports=_each(_open(protocol="TCP")),
    ),
    ("", "persistentvolumeclaims"): CLAIM,
    ("", "persistentvolumes"): _open(
        volumeMode="Filesystem",
        persistentVolumeReclaimPolicy="Retain",
        hostPath=_open(type=""),
        **REMOTE,
    ),
    ("", "replicationcontrollers"): _open(replicas=1, template=TEMPLATE),
    ("apps", "deployments"): _open(
        replicas=1,
        revisionHistoryLimit=10,
        progressDeadlineSeconds=600,
        template=TEMPLATE,
    ),
    ("apps", "replicasets"): _open(replicas=1, template=TEMPLATE),
    ("apps", "statefulsets"): _open(
        replicas=1,
        podManagementPolicy="OrderedReady",
        revisionHistoryLimit=10,
        template=TEMPLATE,
        volumeClaimTemplates=_each(_open(**CLAIM_TEMPLATE)),
    ),
    ("apps", "daemonsets"): _open(
        revisionHistoryLimit=10,
        template=TEMPLATE,
    ),
    ("batch", "jobs"): JOB,
    ("batch", "cronjobs"): _open(
        concurrencyPolicy="Allow",
        suspend=False,
        successfulJobsHistoryLimit=3,
        failedJobsHistoryLimit=1,
        jobTemplate=_open(spec=_open(template=TEMPLATE)),
    ),
    ("networking.k8s.io", "networkpolicies"): _open(
        ingress=_each(_open(ports=PORTS)), egress=_each(_open(ports=PORTS))
    ),
}


def _compiled(spec: Source) -> Schema:
    schema = compile_schema(_open(spec=spec))
    assert schema is not None
    return schema


RULE = _open(scope="*")
WEBHOOKS = _each(
    _open(
        failurePolicy="Fail",
        matchPolicy="Equivalent",
        namespaceSelector={},
        objectSelector={},
        timeoutSeconds=10,
        rules=_each(RULE),
        clientConfig=_open(service=_open(port=443)),
    )
)
# Kinds whose defaults are outside of spec.
WHOLES: dict[tuple[str, str], Source] = {
    ("", "endpoints"): _open(subsets=_each(_open(ports=PORTS))),
    ("discovery.k8s.io", "endpointslices"): _open(
        ports=_each(_open(name="", protocol="TCP"))
    ),
    ("storage.k8s.io", "storageclasses"): _open(
        reclaimPolicy="Delete", volumeBindingMode="Immediate"
    ),
    ("", "podtemplates"): _open(template=TEMPLATE),
    ("storage.k8s.io", "csidrivers"): _open(
        spec=_open(
            attachRequired=True,
            podInfoOnMount=False,
            storageCapacity=False,
            fsGroupPolicy="ReadWriteOnceWithFSType",
            volumeLifecycleModes=["Persistent"],
            requiresRepublish=False,
            seLinuxMount=False,
        )
    ),
    ("apiregistration.k8s.io", "apiservices"): _open(
        spec=_open(service=_open(port=443))
    ),
    ("scheduling.k8s.io", "priorityclasses"): _open(
        preemptionPolicy="PreemptLowerPriority"
    ),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): _open(
        webhooks=WEBHOOKS
    ),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): _open(
        webhooks=_each(
            {
                **WEBHOOKS["items"],
                "properties": {
                    **WEBHOOKS["items"]["properties"],
                    **_open(reinvocationPolicy="Never")["properties"],
                },
            }
        )
    ),
}


def _whole(source: Source) -> Schema:
    schema = compile_schema(source)
    assert schema is not None
    return schema


SCHEMAS = {
    **{resource: _compiled(spec) for resource, spec in SPECS.items()},
    **{resource: _whole(source) for resource, source in WHOLES.items()},
}
