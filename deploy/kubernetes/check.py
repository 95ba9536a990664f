#!/usr/bin/env python3
"""Checks the files for Kubernetes: what refers to something finds it, the times fit each other and the service's
options, and nothing is allowed that the service does not need. Prints what is wrong, a line each.

Needs the package PyYAML: without it the exit code is 77. With the package kubernetes-validate it also checks every
field against the schemas of three versions of Kubernetes; without it a line says that this was left out.
"""

import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
VERSIONS = ["1.30", "1.32", "1.34"]
faults = []


def demand(holds, text):
    if not holds:
        faults.append(text)


def read_all(yaml):
    names = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
    others = {path.name for path in FOLDER.glob("*.yaml")} - {"kustomization.yaml"}
    demand(set(names) == others, f"kustomization.yaml lists {sorted(names)}, and there are {sorted(others)}")
    return {name: yaml.safe_load((FOLDER / name).read_text()) for name in names}


def read_options(path):
    lines = [line.strip() for line in path.read_text().splitlines()]
    return dict(line.split(" = ", 1) for line in lines if line and not line.startswith("#"))


def check_labels(files, pod_labels):
    selectors = {
        "service.yaml": files["service.yaml"]["spec"]["selector"],
        "statefulset.yaml": files["statefulset.yaml"]["spec"]["selector"]["matchLabels"],
        "disruption.yaml": files["disruption.yaml"]["spec"]["selector"]["matchLabels"],
        "network.yaml": files["network.yaml"]["spec"]["podSelector"]["matchLabels"],
    }
    for name, selector in selectors.items():
        demand(selector and selector.items() <= pod_labels.items(), f"{name} selects no pod of the service")


def check_references(files, pod, container):
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for port in files["service.yaml"]["spec"]["ports"]:
        demand(port["targetPort"] in ports, f"service.yaml: no port is named {port['targetPort']}")
        demand(ports.get(port["targetPort"]) == port["port"], "service.yaml has another port than the container")
    for rule in files["network.yaml"]["spec"]["ingress"]:
        demand("from" in rule, "network.yaml lets everybody in")
        for port in rule["ports"]:
            demand(port["port"] in ports, f"network.yaml: no port is named {port['port']}")
    claims = [claim["metadata"]["name"] for claim in files["statefulset.yaml"]["spec"]["volumeClaimTemplates"]]
    volumes = claims + [volume["name"] for volume in pod["volumes"]]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    demand(sorted(volumes) == sorted(mounts), f"the volumes are {sorted(volumes)}, and mounted are {sorted(mounts)}")
    demand(pod["serviceAccountName"] == files["account.yaml"]["metadata"]["name"], "the account is another one")
    demand(files["statefulset.yaml"]["spec"]["serviceName"] == files["service.yaml"]["metadata"]["name"],
           "the StatefulSet names another service")
    return mounts


def check_options(files, container, mounts):
    options = read_options(FOLDER / "rootgate.conf")
    demand(options["data"].startswith(mounts["data"] + "/"), "the data are not below the volume's own folder")
    for name in ["tls-certificate", "tls-key"]:
        demand(options[name].startswith(mounts["certificate"] + "/"), f"{name} is not in the mounted folder")
    demand(int(options["listen"].rsplit(":", 1)[1]) == container["ports"][0]["containerPort"], "listen: another port")
    demand(options["operator"] == "127.0.0.1:7571", "probes ask at another address than the service serves")
    demand(mounts["options"] in container["args"], "the arguments name another file with options")
    claim = files["statefulset.yaml"]["spec"]["volumeClaimTemplates"][0]["spec"]
    size = claim["resources"]["requests"]["storage"]
    demand(size.endswith("Gi") and int(size[:-2]) * 1024 >= 1.2 * int(options["storage-max"]),
           f"a volume of {size} is too small for storage-max = {options['storage-max']}")
    return options


def check_times(pod, container, options):
    pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    grace = pod["terminationGracePeriodSeconds"]
    demand(grace >= pause + int(options["drain-seconds"]) + 10, f"{grace} s are too few to stop in order")
    for kind in ["startupProbe", "readinessProbe", "livenessProbe"]:
        probe = container[kind]
        command = probe["exec"]["command"]
        demand(command[:2] == ["/usr/bin/rootgate", "probe"], f"{kind} runs {command[:2]}")
        demand(("--live" in command) == (kind != "readinessProbe"), f"{kind} asks for the wrong page")
        demand(int(command[command.index("--timeout") + 1]) < probe["timeoutSeconds"] <= probe["periodSeconds"],
               f"{kind}: its times don't fit each other")
    start = container["startupProbe"]
    demand(start["periodSeconds"] * start["failureThreshold"] >= 600, "a start may take too little time")


def check_security(files, pod, container):
    demand(files["statefulset.yaml"]["spec"]["replicas"] == 1, "more than one process would use the data")
    context = pod["securityContext"]
    user = context["runAsUser"]
    demand(context["runAsNonRoot"] is True and user > 0 and context["runAsGroup"] > 0, "it runs as root")
    demand(context["seccompProfile"] == {"type": "RuntimeDefault"}, "there is no filter of system calls")
    demand(context["fsGroupChangePolicy"] == "OnRootMismatch", "each start opens the secret to the group")
    own = container["securityContext"]
    least = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    demand(own == least, f"the container may {own}")
    demand(pod["automountServiceAccountToken"] is False, "the pod gets a token of the cluster")
    for name in ["hostNetwork", "hostPID", "hostIPC", "initContainers"]:
        demand(name not in pod, f"the pod has {name}")
    network = files["network.yaml"]["spec"]
    demand(network["policyTypes"] == ["Ingress", "Egress"] and network["egress"] == [], "the service may connect")
    image = (FOLDER.parent / "container" / "Containerfile").read_text()
    demand(f"USER {user}:{context['runAsGroup']}\n" in image, "the image has another user")
    demand('ENTRYPOINT ["/usr/bin/rootgate"]\n' in image, "the image starts another program")


def check_schemas(files):
    try:
        import kubernetes_validate
    except ImportError:
        print("SKIPPED: there is no package kubernetes-validate, so no field is checked against a schema")
        return
    for version in VERSIONS:
        for name, document in files.items():
            try:
                kubernetes_validate.validate(document, version, strict=True)
            except Exception as error:  # Each kind of fault has a class of its own.
                faults.append(f"{name}, Kubernetes {version}: {error}")


def main():
    try:
        import yaml
    except ImportError:
        print("SKIPPED: there is no package PyYAML, so the files for Kubernetes are not checked")
        return 77
    files = read_all(yaml)
    template = files["statefulset.yaml"]["spec"]["template"]
    pod = template["spec"]
    container, = pod["containers"]
    check_labels(files, template["metadata"]["labels"])
    mounts = check_references(files, pod, container)
    check_times(pod, container, check_options(files, container, mounts))
    check_security(files, pod, container)
    check_schemas(files)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
