package deploytest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/json"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// kustomizations are the folders below deploy/kubernetes that can be applied.
func kustomizations() []string { return []string{"base", "overlays/example", "overlays/pgbouncer"} }

// objects builds a kustomization and decodes every object strictly into its API type.
func objects(t *testing.T, folder string) []any {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "deploy/kubernetes", folder))
	if err != nil {
		t.Fatal(err)
	}
	var all []any
	for _, resource := range built.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		object := empty(resource.GetGvk().String())
		if object == nil {
			t.Fatalf("%s: no API type is known here for %s", folder, resource.GetGvk())
		}
		if err := decode(text, object); err != nil {
			t.Fatalf("%s: %s %s: %v", folder, resource.GetKind(), resource.GetName(), err)
		}
		all = append(all, object)
	}
	return all
}

// decode is as strict as an API server: it refuses unknown and repeated keys, and lower case for upper.
func decode(text []byte, object any) error {
	converted, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return err
	}
	mistakes, err := json.UnmarshalStrict(converted, object)
	return errors.Join(append(mistakes, err)...)
}

// empty returns a new object of an API type; nil: there is none that is used here.
func empty(gvk string) any {
	switch gvk {
	case "ServiceAccount.v1.[noGrp]":
		return &corev1.ServiceAccount{}
	case "ConfigMap.v1.[noGrp]":
		return &corev1.ConfigMap{}
	case "Deployment.v1.apps":
		return &appsv1.Deployment{}
	case "PodDisruptionBudget.v1.policy":
		return &policyv1.PodDisruptionBudget{}
	case "NetworkPolicy.v1.networking.k8s.io":
		return &networkingv1.NetworkPolicy{}
	case "PodMonitor.v1.monitoring.coreos.com":
		return &monitoringv1.PodMonitor{}
	case "PrometheusRule.v1.monitoring.coreos.com":
		return &monitoringv1.PrometheusRule{}
	default:
		return nil
	}
}

// one returns the only object of a type.
func one[T any](t *testing.T, all []any) *T {
	t.Helper()
	var found []*T
	for _, object := range all {
		if typed, ok := object.(*T); ok {
			found = append(found, typed)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of type %T, want one", len(found), *new(T))
	}
	return found[0]
}

func deployment(t *testing.T, all []any) *appsv1.Deployment { return one[appsv1.Deployment](t, all) }

// each runs a test on every kustomization.
func each(t *testing.T, check func(t *testing.T, all []any)) {
	for _, folder := range kustomizations() {
		t.Run(folder, func(t *testing.T) { check(t, objects(t, folder)) })
	}
}

// The secret that a kustomization tells how to make has every key that its pods use.
func TestSecretKeys(t *testing.T) {
	for _, folder := range kustomizations() {
		all := objects(t, folder)
		told := read(t, "deploy/kubernetes/"+folder+"/kustomization.yaml")
		if !strings.Contains(told, "kubectl create secret") {
			told = read(t, "deploy/kubernetes/base/kustomization.yaml")
		}
		use := func(secret, key string) {
			if !strings.Contains(told, "create secret generic "+secret+" ") || !strings.Contains(told, "--from-file="+key+"=") {
				t.Errorf("%s: nothing tells how to make %s with the key %s", folder, secret, key)
			}
		}
		for _, v := range deployment(t, all).Spec.Template.Spec.Volumes {
			if v.Secret != nil {
				for _, item := range v.Secret.Items {
					use(v.Secret.SecretName, item.Key)
				}
			}
		}
		for _, c := range containers(deployment(t, all)) {
			for _, v := range c.Env {
				if v.ValueFrom != nil {
					use(v.ValueFrom.SecretKeyRef.Name, v.ValueFrom.SecretKeyRef.Key)
				}
			}
		}
	}
}

func containers(d *appsv1.Deployment) []corev1.Container {
	return slices.Concat(d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers)
}

func TestSelectorsSelectThePods(t *testing.T) {
	each(t, func(t *testing.T, all []any) {
		d := deployment(t, all)
		pods := d.Spec.Template.Labels
		for name, selector := range map[string]map[string]string{
			"the Deployment":          d.Spec.Selector.MatchLabels,
			"the PodDisruptionBudget": one[policyv1.PodDisruptionBudget](t, all).Spec.Selector.MatchLabels,
			"the NetworkPolicy":       one[networkingv1.NetworkPolicy](t, all).Spec.PodSelector.MatchLabels,
			"the PodMonitor":          one[monitoringv1.PodMonitor](t, all).Spec.Selector.MatchLabels,
			"the topology spread":     d.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels,
		} {
			if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(labels.Set(pods)) {
				t.Errorf("%s selects %v, the pods have %v", name, selector, pods)
			}
		}
		if job := pods[one[monitoringv1.PodMonitor](t, all).Spec.JobLabel]; job != "nudged" {
			t.Errorf("the job is %q, the rules ask for nudged", job)
		}
		for _, name := range []string{"name", "instance", "component", "part-of", "managed-by"} {
			if pods["app.kubernetes.io/"+name] == "" || d.Labels["app.kubernetes.io/"+name] == "" {
				t.Errorf("there is no label app.kubernetes.io/%s", name)
			}
		}
	})
}

func TestPorts(t *testing.T) {
	each(t, func(t *testing.T, all []any) {
		d := deployment(t, all)
		daemon := d.Spec.Template.Spec.Containers[0]
		port := daemon.Ports[0]
		if want := fmt.Sprintf("--web.listen-address=:%d", port.ContainerPort); !slices.Contains(daemon.Args, want) {
			t.Errorf("%v does not listen on the port %d of the container", daemon.Args, port.ContainerPort)
		}
		for probe, path := range map[*corev1.Probe]string{
			daemon.StartupProbe: "/-/healthy", daemon.LivenessProbe: "/-/healthy", daemon.ReadinessProbe: "/-/ready",
		} {
			if get := probe.HTTPGet; get.Path != path || get.Port.StrVal != port.Name {
				t.Errorf("a probe asks %s on %s, want %s on %s", get.Path, get.Port.String(), path, port.Name)
			}
		}
		endpoint := one[monitoringv1.PodMonitor](t, all).Spec.PodMetricsEndpoints[0]
		if *endpoint.Port != port.Name || endpoint.Path != "/metrics" {
			t.Errorf("the PodMonitor scrapes %s on %s", endpoint.Path, *endpoint.Port)
		}
		policy := one[networkingv1.NetworkPolicy](t, all).Spec
		if in := policy.Ingress[0].Ports[0].Port; in.StrVal != port.Name {
			t.Errorf("the NetworkPolicy lets %s in, the port is %s", in, port.Name)
		}
		var out []intstr.IntOrString
		for _, rule := range policy.Egress {
			for _, p := range rule.Ports {
				out = append(out, *p.Port)
			}
		}
		for _, want := range []int{53, 5432, configOf(t, all).SMTP.Port} {
			if !slices.Contains(out, intstr.FromInt(want)) {
				t.Errorf("the NetworkPolicy does not let %d out, only %v", want, out)
			}
		}
	})
}

func TestPodIsRestricted(t *testing.T) {
	each(t, func(t *testing.T, all []any) {
		spec := deployment(t, all).Spec.Template.Spec
		pod := spec.SecurityContext
		if !*pod.RunAsNonRoot || *pod.RunAsUser == 0 || pod.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("the pod may run as root or without seccomp: %+v", pod)
		}
		if *spec.AutomountServiceAccountToken || spec.ServiceAccountName != one[corev1.ServiceAccount](t, all).Name {
			t.Error("the pod has a token, or another account than its own")
		}
		for _, c := range containers(deployment(t, all)) {
			s := c.SecurityContext
			if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
				t.Errorf("%s is not restricted: %+v", c.Name, s)
			}
			asked, most := c.Resources.Requests[corev1.ResourceMemory], c.Resources.Limits[corev1.ResourceMemory]
			if asked.IsZero() || most.Cmp(asked) < 0 || c.Resources.Requests.Cpu().IsZero() {
				t.Errorf("%s asks for %v, limit %v", c.Name, c.Resources.Requests, c.Resources.Limits)
			}
		}
	})
}

func TestRollout(t *testing.T) {
	each(t, func(t *testing.T, all []any) {
		d := deployment(t, all)
		rolling := d.Spec.Strategy.RollingUpdate
		if rolling.MaxUnavailable.IntVal != 0 || rolling.MaxSurge.IntVal != 1 || *d.Spec.Replicas < 2 {
			t.Errorf("%d replicas, rolled out with %v", *d.Spec.Replicas, rolling)
		}
		if budget := one[policyv1.PodDisruptionBudget](t, all).Spec; budget.MaxUnavailable.IntVal != 1 || budget.MinAvailable != nil {
			t.Errorf("the disruption budget is %+v", budget)
		}
		first := d.Spec.Template.Spec.InitContainers[0]
		if first.Args[0] != "migrate" || first.Image != d.Spec.Template.Spec.Containers[0].Image {
			t.Errorf("the init container runs %v of %s", first.Args, first.Image)
		}
	})
}

// A stop may take as long as the last conversation and the recording of what came of it: only then
// may Kubernetes kill.
func TestGracePeriodOutlastsAStop(t *testing.T) {
	const recording = time.Minute // settling and the last scrape; docs/operations.md
	each(t, func(t *testing.T, all []any) {
		cfg := configOf(t, all).SMTP
		longest := timeout(t, cfg.CommandTimeout, "60s") + timeout(t, cfg.ReplyTimeout, "10m") + recording
		grace := time.Duration(*deployment(t, all).Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
		if grace <= longest {
			t.Errorf("the grace period is %s, a stop may take %s", grace, longest)
		}
	})
}

func timeout(t *testing.T, text, standard string) time.Duration {
	t.Helper()
	if text == "" {
		text = standard
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// written is what these tests read of a nudged.yml; check-config reads all of it.
type written struct {
	Database struct {
		URLFile string `json:"url_file"`
	} `json:"database"`
	SMTP struct {
		Port           int    `json:"port"`
		PasswordFile   string `json:"password_file"`
		CommandTimeout string `json:"command_timeout"`
		ReplyTimeout   string `json:"reply_timeout"`
	} `json:"smtp"`
}

func configOf(t *testing.T, all []any) written {
	t.Helper()
	var cfg written
	if err := yaml.Unmarshal([]byte(one[corev1.ConfigMap](t, all).Data["nudged.yml"]), &cfg); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// The containers see the configuration and the secrets where they are told to look, and the
// program finds no mistake in the file.
func TestConfigurationIsFound(t *testing.T) {
	each(t, func(t *testing.T, all []any) {
		d := deployment(t, all)
		volumes := map[string]corev1.Volume{}
		for _, v := range d.Spec.Template.Spec.Volumes {
			volumes[v.Name] = v
		}
		files := map[string]string{} // path in the container → content
		for _, c := range containers(d) {
			for _, mount := range c.VolumeMounts {
				switch v := volumes[mount.Name]; {
				case v.ConfigMap != nil && v.ConfigMap.Name == one[corev1.ConfigMap](t, all).Name:
					for name, content := range one[corev1.ConfigMap](t, all).Data {
						files[filepath.Join(mount.MountPath, name)] = content
					}
				case v.Secret != nil:
					for _, item := range v.Secret.Items {
						files[filepath.Join(mount.MountPath, item.Path)] = secretFor(item.Key)
					}
				default:
					t.Errorf("%s mounts %q, which is no volume of the pod", c.Name, mount.Name)
				}
				if !mount.ReadOnly {
					t.Errorf("%s may write to %s", c.Name, mount.MountPath)
				}
			}
			config := variable(t, c, "NUDGED_CONFIG_FILE")
			dir := t.TempDir()
			for path, content := range files {
				content = regexp.MustCompile(`(_file: )/`).ReplaceAllString(content, "${1}"+dir+"/")
				path = filepath.Join(dir, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := execute(t, "", nil, program, "check-config", "--config.file="+filepath.Join(dir, config)); got.status != 0 {
				t.Errorf("check-config of %s ends with %d:\n%s", c.Name, got.status, got.stderr)
			}
		}
	})
}

// secretFor is what a key of the secret may hold.
func secretFor(key string) string {
	if key == "database-url" {
		return "postgres://nudged:secret@db.example.com/app?sslmode=verify-full\n"
	}
	return "secret\n"
}

func variable(t *testing.T, c corev1.Container, name string) string {
	t.Helper()
	for _, v := range c.Env {
		if v.Name == name {
			return v.Value
		}
	}
	t.Fatalf("%s has no %s", c.Name, name)
	return ""
}

// The containers start as they are written: their arguments are the program's.
func TestContainerArguments(t *testing.T) {
	s := newSite(t, "")
	each(t, func(t *testing.T, all []any) {
		for _, c := range containers(deployment(t, all)) {
			arguments := slices.Clone(c.Args)
			var env []string
			for _, v := range c.Env {
				env = append(env, v.Name+"="+v.Value)
			}
			env = append(env, s.environment()...) // the last one wins
			if arguments[0] == "migrate" {
				if got := execute(t, "", env, program, arguments...); got.status != 0 {
					t.Errorf("%v ends with %d: %s", c.Args, got.status, got.stderr)
				}
				continue
			}
			address := freeAddress(t)
			for i, argument := range arguments {
				if strings.HasPrefix(argument, "--web.listen-address=") {
					arguments[i] = "--web.listen-address=" + address
				}
			}
			d := &daemon{process: spawn(t, env, program, arguments...), address: address}
			d.ready()
			for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
				if status, body := d.get(probe.HTTPGet.Path); status != 200 {
					t.Errorf("%s answers %d: %s", probe.HTTPGet.Path, status, body)
				}
			}
			if line, _, _ := strings.Cut(d.log.String(), "\n"); !strings.HasPrefix(line, "{") {
				t.Errorf("the log is no JSON: %s", line)
			}
			d.end(os.Interrupt)
		}
	})
}

// The example changes what an installation changes, and nothing of how the pod runs.
func TestOverlay(t *testing.T) {
	base, overlay := objects(t, "base"), objects(t, "overlays/example")
	if n := *deployment(t, overlay).Spec.Replicas; n != 3 {
		t.Errorf("%d replicas, want 3", n)
	}
	if one[corev1.ConfigMap](t, base).Name == one[corev1.ConfigMap](t, overlay).Name {
		t.Error("another configuration is no other ConfigMap")
	}
	image := deployment(t, overlay).Spec.Template.Spec.Containers[0].Image
	if image != "images.example.com/nudged:1.0.0" {
		t.Errorf("the image is %s", image)
	}
	want, got := deployment(t, base).Spec.Template.Spec, deployment(t, overlay).Spec.Template.Spec
	want.Volumes, got.Volumes = nil, nil
	for _, spec := range []corev1.PodSpec{want, got} {
		for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
			for i := range list {
				list[i].Image = ""
			}
		}
	}
	wantText, err1 := yaml.Marshal(want)
	gotText, err2 := yaml.Marshal(got)
	if err1 != nil || err2 != nil || !bytes.Equal(wantText, gotText) {
		t.Errorf("the pods differ by more than image and configuration:\n%s\n%s", wantText, gotText)
	}
}
