#!/usr/bin/env python3
"""Checks the files for Kubernetes, those of one service and those of a cluster: what refers to something finds it, the
times fit each other and the service's options, and nothing is allowed that the programs do not need. Prints what is
wrong, a line each.

Needs the package PyYAML: without it the exit code is 77. With the package kubernetes-validate it also checks every
field against the schemas of three versions of Kubernetes; without it a line says that this was left out.
"""

import itertools
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
VERSIONS = ["1.30", "1.32", "1.34"]
APPLICATION = "app.kubernetes.io/name"
CLIENT = {"podSelector": {"matchLabels": {"rootgate.example.com/client": "true"}}}
LEAST = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
faults = []


def demand(holds, text):
    if not holds:
        faults.append(text)


class Part:
    """The documents of one folder, which start the pods of one StatefulSet."""

    def __init__(self, yaml, folder):
        self.folder = FOLDER / folder
        self.path = folder
        self.kustomization = yaml.safe_load((self.folder / "kustomization.yaml").read_text())
        names = {name for name in self.kustomization["resources"] if name.endswith(".yaml")}
        others = {path.name for path in self.folder.glob("*.yaml")} - {"kustomization.yaml"}
        self.demand(names == others, f"kustomization.yaml lists {sorted(names)}, and there are {sorted(others)}")
        self.documents = [
            (name, document)
            for name in sorted(others)
            for document in yaml.safe_load_all((self.folder / name).read_text())
        ]
        self.set, = self.all("StatefulSet")
        self.policy, = self.all("NetworkPolicy")
        self.budget, = self.all("PodDisruptionBudget")
        self.name = self.set["metadata"]["name"]
        self.labels = self.set["spec"]["template"]["metadata"]["labels"]
        self.pod = self.set["spec"]["template"]["spec"]
        self.container, = self.pod["containers"]
        self.mounts = {mount["name"]: mount["mountPath"] for mount in self.container["volumeMounts"]}
        self.ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        self.storage = self.set["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"]

    def all(self, kind):
        return [document for _, document in self.documents if document["kind"] == kind]

    def demand(self, holds, text):
        demand(holds, f"{self.path}: {text}")

    @property
    def hosts(self):
        """The names of the pods, as others in the namespace find them."""
        spec = self.set["spec"]
        return [f"{self.name}-{number}.{spec['serviceName']}" for number in range(spec["replicas"])]

    def selects(self, selector):
        return bool(selector) and selector.items() <= self.labels.items()


def read_options(path):
    lines = [line.strip() for line in path.read_text().splitlines()]
    return dict(line.split(" = ", 1) for line in lines if line and not line.startswith("#"))


# What holds for each part.


def check_labels(part):
    selectors = [
        ("the StatefulSet", part.set["spec"]["selector"]["matchLabels"]),
        ("the PodDisruptionBudget", part.budget["spec"]["selector"]["matchLabels"]),
        ("the NetworkPolicy", part.policy["spec"]["podSelector"]["matchLabels"]),
    ]
    selectors += [(f"the Service {each['metadata']['name']}", each["spec"]["selector"]) for each in part.all("Service")]
    for name, selector in selectors:
        part.demand(part.selects(selector), f"{name} selects no pod of the folder")
    for name, document in part.documents:
        own = document["metadata"]["labels"] == {APPLICATION: part.labels[APPLICATION]}
        part.demand(own, f"{name} has other labels than the pods")


def check_references(part):
    for service in part.all("Service"):
        for port in service["spec"]["ports"]:
            part.demand(port["targetPort"] in part.ports, f"no port is named {port['targetPort']}")
            part.demand(part.ports.get(port["targetPort"]) == port["port"],
                        "a Service has another port than the container")
    claims = [claim["metadata"]["name"] for claim in part.set["spec"]["volumeClaimTemplates"]]
    volumes = sorted(claims + [volume["name"] for volume in part.pod["volumes"]])
    containers = [part.container, *part.pod.get("initContainers", [])]
    mounted = sorted({mount["name"] for container in containers for mount in container["volumeMounts"]})
    part.demand(volumes == mounted, f"the volumes are {volumes}, and mounted are {mounted}")
    account, = part.all("ServiceAccount")
    part.demand(part.pod["serviceAccountName"] == account["metadata"]["name"], "the account is another one")
    headless = [service for service in part.all("Service") if service["spec"].get("clusterIP") == "None"]
    part.demand([service["metadata"]["name"] for service in headless] == [part.set["spec"]["serviceName"]],
                "the StatefulSet does not name the one Service that has no address")
    generated = {generator["name"] for generator in part.kustomization.get("configMapGenerator", [])}
    named = {volume["configMap"]["name"] for volume in part.pod["volumes"] if "configMap" in volume}
    part.demand(generated == named, f"there are the ConfigMaps {sorted(generated)}, and named are {sorted(named)}")
    images = {container["image"] for container in containers}
    renamed = {image["name"] for image in part.kustomization["images"]}
    part.demand(images == renamed, f"the images are {sorted(images)}, and kustomization.yaml renames {sorted(renamed)}")


def check_security(part):
    context = part.pod["securityContext"]
    user = context["runAsUser"]
    part.demand(context["runAsNonRoot"] is True and user > 0 and context["runAsGroup"] > 0, "it runs as root")
    part.demand(context["runAsGroup"] == context["fsGroup"], "its volume is another group's")
    part.demand(context["seccompProfile"] == {"type": "RuntimeDefault"}, "there is no filter of system calls")
    part.demand(context["fsGroupChangePolicy"] == "OnRootMismatch", "each start opens the data to the group")
    for container in [part.container, *part.pod.get("initContainers", [])]:
        own = container["securityContext"]
        part.demand(own == LEAST, f"the container {container['name']} may {own}")
        part.demand("memory" in container["resources"]["limits"], f"{container['name']} may take all memory")
    part.demand(part.pod["automountServiceAccountToken"] is False, "the pod gets a token of Kubernetes")
    part.demand(part.pod["enableServiceLinks"] is False, "the names of services become variables of the program")
    for name in ["hostNetwork", "hostPID", "hostIPC"]:
        part.demand(name not in part.pod, f"the pod has {name}")
    for volume in part.pod["volumes"]:
        part.demand(volume.get("secret", {"defaultMode": 0o440})["defaultMode"] == 0o440,
                    f"others may read {volume['name']}")
    part.demand(set(part.set["spec"]["persistentVolumeClaimRetentionPolicy"].values()) == {"Retain"},
                "the data end with the StatefulSet")


def check_network(part, callers, called):
    """`callers` may connect, and `called` are connected to: pairs of a peer and its ports."""
    spec = part.policy["spec"]
    part.demand(spec["policyTypes"] == ["Ingress", "Egress"], "the NetworkPolicy leaves a direction open")
    names = [(rule.get("from"), [port["port"] for port in rule.get("ports", [])]) for rule in spec["ingress"]]
    part.demand(names == callers, f"others may connect: {names}")
    for port in itertools.chain(*(ports for _, ports in callers)):
        part.demand(port in part.ports, f"no port is named {port}")
    rules = [(rule.get("to"), [port["port"] for port in rule.get("ports", [])]) for rule in spec["egress"]]
    resolver = [peer for peer, ports in rules if ports == [53, 53]]
    part.demand(len(resolver) == bool(called) and None not in resolver, "names are asked of others than Kubernetes")
    others = [rule for rule in rules if rule[1] != [53, 53]]
    part.demand(others == called, f"it may connect to others: {others}")


def check_replicas(part):
    """What lets a cluster go on when a node fails or is emptied, and while it is updated."""
    spec = part.set["spec"]
    part.demand(spec["replicas"] == 3, f"{spec['replicas']} are not three")
    part.demand(spec["podManagementPolicy"] == "Parallel", "one waits for another one")
    part.demand(spec["updateStrategy"] == {"type": "RollingUpdate"}, "an update is not one after the other")
    part.demand(part.budget["spec"].get("maxUnavailable") == 1, "more than one may be evicted at once")
    terms = part.pod["affinity"]["podAntiAffinity"].get("requiredDuringSchedulingIgnoredDuringExecution", [])
    nodes = [term for term in terms if term["topologyKey"] == "kubernetes.io/hostname"]
    part.demand(len(nodes) == 1 and part.selects(nodes[0]["labelSelector"]["matchLabels"]), "a node may have two")
    zones = [spread for spread in part.pod["topologySpreadConstraints"]
             if spread["topologyKey"] == "topology.kubernetes.io/zone"]
    part.demand(len(zones) == 1 and part.selects(zones[0]["labelSelector"]["matchLabels"]), "zones don't matter")
    part.demand([zone["whenUnsatisfiable"] for zone in zones] == ["ScheduleAnyway"], "a pod waits for a zone")


# What holds for the services: the one that is alone, and the gates of a cluster.


def check_options(part):
    options = read_options(part.folder / "rootgate.conf")
    part.demand(options["data"].startswith(part.mounts["data"] + "/"), "the data are not below the volume's own folder")
    for name in ["tls-certificate", "tls-key"]:
        part.demand(options[name].startswith(part.mounts["certificate"] + "/"), f"{name} is not in the mounted folder")
    part.demand(int(options["listen"].rsplit(":", 1)[1]) == part.ports["clients"], "listen: another port")
    part.demand(options["operator"] == "127.0.0.1:7571", "probes ask at another address than the service serves")
    part.demand(part.mounts["options"] in part.container["args"], "the arguments name another file with options")
    part.demand(part.storage.endswith("Gi") and int(part.storage[:-2]) * 1024 >= 1.2 * int(options["storage-max"]),
                f"a volume of {part.storage} is too small for storage-max = {options['storage-max']}")
    return options


def check_times(part, options):
    pause = part.container["lifecycle"]["preStop"]["sleep"]["seconds"]
    grace = part.pod["terminationGracePeriodSeconds"]
    part.demand(grace >= pause + int(options["drain-seconds"]) + 10, f"{grace} s are too few to stop in order")
    for kind in ["startupProbe", "readinessProbe", "livenessProbe"]:
        probe = part.container[kind]
        command = probe["exec"]["command"]
        part.demand(command[:2] == ["/usr/bin/rootgate", "probe"], f"{kind} runs {command[:2]}")
        part.demand(("--live" in command) == (kind != "readinessProbe"), f"{kind} asks for the wrong page")
        part.demand(int(command[command.index("--timeout") + 1]) < probe["timeoutSeconds"] <= probe["periodSeconds"],
                    f"{kind}: its times don't fit each other")
    start = part.container["startupProbe"]
    part.demand(start["periodSeconds"] * start["failureThreshold"] >= 600, "a start may take too little time")


def check_image(part):
    context = part.pod["securityContext"]
    image = (FOLDER.parent / "container" / "Containerfile").read_text()
    part.demand(f"USER {context['runAsUser']}:{context['runAsGroup']}\n" in image, "the image has another user")
    part.demand('ENTRYPOINT ["/usr/bin/rootgate"]\n' in image, "the image starts another program")


def check_single(part):
    part.demand(part.set["spec"]["replicas"] == 1, "more than one process would use the data")
    part.demand("initContainers" not in part.pod, "the pod has initContainers")
    check_network(part, [([CLIENT], ["clients"])], [])
    part.demand("cluster" not in read_options(part.folder / "rootgate.conf"), "the service alone names a cluster")


def check_gates(part, options, etcd):
    port = etcd.ports["clients"]
    members = "etcds://" + ",".join(f"{host}:{port}" for host in etcd.hosts)
    part.demand(options["cluster"] == members, f"cluster is not {members}")
    part.demand(options.get("cluster-name"), "the cluster has no name")
    for name, file in [("cluster-ca", "ca.crt"), ("cluster-certificate", "tls.crt"), ("cluster-key", "tls.key")]:
        part.demand(options[name] == f"{part.mounts.get('etcd')}/{file}", f"{name} is not in the mounted folder")
    check_secret_copy(part, options)
    balanced = [service["spec"] for service in part.all("Service") if service["spec"].get("clusterIP") != "None"]
    part.demand([spec.get("sessionAffinity") for spec in balanced] == ["ClientIP"],
                "a client that connects again finds another gate than the one that knows its challenge")
    application = {"podSelector": {"matchLabels": {APPLICATION: etcd.labels[APPLICATION]}}}
    check_network(part, [([CLIENT], ["clients"])], [([application], [port])])


def check_secret_copy(part, options):
    """The secret is a file of the gates' user, and of nobody else, in memory."""
    copier, = part.pod["initContainers"]
    volumes = {volume["name"]: volume for volume in part.pod["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in copier["volumeMounts"]}
    part.demand(set(mounts) == {"secret", "secret-copy"}, f"the init container sees {sorted(mounts)}")
    part.demand("secret" not in part.mounts, "the gate sees what it refuses")
    part.demand(volumes["secret-copy"].get("emptyDir", {}).get("medium") == "Memory", "the secret is written to a disk")
    part.demand(volumes["secret"]["secret"]["secretName"] == "rootgate-secret", "the secret is another one")
    steps = copier["command"][2].split("; ")
    target = mounts["secret-copy"] + "/secret"
    part.demand(copier["command"][:2] == ["sh", "-ec"] and steps[0] == "umask 077", "others may read the secret's copy")
    part.demand(steps[1:] == [f"cp {mounts['secret']}/secret {target}.new", f"mv {target}.new {target}"],
                "the secret is copied elsewhere")
    part.demand(options["secret-file"] == f"{part.mounts.get('secret-copy')}/secret", "secret-file is not the copy")


# What holds for the members of etcd.


def check_etcd(part, gates):
    spec = part.all("Service")[0]["spec"]
    part.demand(spec.get("publishNotReadyAddresses") is True, "no member finds another one before it is ready")
    arguments = dict(argument[2:].split("=", 1) for argument in part.container["args"])
    client, peer = part.ports["clients"], part.ports["members"]
    own = f"$(POD_NAME).{part.set['spec']['serviceName']}"
    names = [host.split(".")[0] for host in part.hosts]
    tls = part.mounts["certificate"]
    expected = {
        "name": "$(POD_NAME)",
        "listen-client-urls": f"https://0.0.0.0:{client}",
        "advertise-client-urls": f"https://{own}:{client}",
        "listen-peer-urls": f"https://0.0.0.0:{peer}",
        "initial-advertise-peer-urls": f"https://{own}:{peer}",
        "initial-cluster": ",".join(f"{name}=https://{host}:{peer}" for name, host in zip(names, part.hosts)),
        "listen-metrics-urls": f"http://0.0.0.0:{part.ports['probes']}",
        "client-cert-auth": "true", "peer-client-cert-auth": "true",
        "cert-file": f"{tls}/tls.crt", "key-file": f"{tls}/tls.key", "trusted-ca-file": f"{tls}/ca.crt",
        "peer-cert-file": f"{tls}/tls.crt", "peer-key-file": f"{tls}/tls.key", "peer-trusted-ca-file": f"{tls}/ca.crt",
        "auto-compaction-mode": "revision",
    }
    for name, value in expected.items():
        part.demand(arguments.get(name) == value, f"--{name} is {arguments.get(name)}, not {value}")
    part.demand(int(arguments.get("auto-compaction-retention", 0)) > 0, "etcd keeps what was removed")
    part.demand(arguments["data-dir"].startswith(part.mounts["data"] + "/"), "the data are elsewhere than the volume")
    part.demand(int(part.storage.removesuffix("Gi")) * 2**30 >= 4 * int(arguments["quota-backend-bytes"]),
                f"a volume of {part.storage} is too small for what etcd may keep")
    election = int(arguments["election-timeout"])
    part.demand(10 * int(arguments["heartbeat-interval"]) <= election <= 625, "elections for nothing, or long ones")
    pages = {kind: part.container[kind]["httpGet"] for kind in ["startupProbe", "readinessProbe", "livenessProbe"]}
    for kind, page in pages.items():
        path = "/readyz" if kind == "readinessProbe" else "/livez"
        part.demand(page == {"path": path, "port": "probes"}, f"{kind} asks for {page}")
    peers = {name: {"podSelector": {"matchLabels": {APPLICATION: name}}}
             for name in [part.labels[APPLICATION], gates.labels[APPLICATION]]}
    members, users = peers.values()
    check_network(part, [([users], ["clients"]), ([members], ["clients", "members"])], [([members], [client, peer])])


# What holds for all parts together.


def check_together(parts):
    """One service and a cluster may run in one namespace."""
    names = [(document["kind"], document["metadata"]["name"]) for part in parts for _, document in part.documents]
    for name in sorted({name for name in names if names.count(name) > 1}):
        demand(False, f"two are {name[0]} {name[1]}")
    for one, other in itertools.permutations(parts, 2):
        demand(not other.selects(one.set["spec"]["selector"]["matchLabels"]),
               f"{one.path} selects pods of {other.path}")


def check_schemas(parts):
    try:
        import kubernetes_validate
    except ImportError:
        print("SKIPPED: there is no package kubernetes-validate, so no field is checked against a schema")
        return
    for version in VERSIONS:
        for part in parts:
            for name, document in part.documents:
                try:
                    kubernetes_validate.validate(document, version, strict=True)
                except Exception as error:  # Each kind of fault has a class of its own.
                    faults.append(f"{part.path}: {name}, Kubernetes {version}: {error}")


def main():
    try:
        import yaml
    except ImportError:
        print("SKIPPED: there is no package PyYAML, so the files for Kubernetes are not checked")
        return 77
    single, gates, etcd = parts = [Part(yaml, folder) for folder in [".", "cluster", "cluster/etcd"]]
    for part in parts:
        check_labels(part)
        check_references(part)
        check_security(part)
    for part in [single, gates]:
        options = check_options(part)
        check_times(part, options)
        check_image(part)
    for part in [gates, etcd]:
        check_replicas(part)
    check_single(single)
    check_gates(gates, options, etcd)
    check_etcd(etcd, gates)
    demand("etcd" in gates.kustomization["resources"], "cluster: kustomization.yaml leaves out etcd")
    check_together(parts)
    check_schemas(parts)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
