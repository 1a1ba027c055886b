package onlambda_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gateway/local/mockprovider"
	"gateway/shared/app/onaws"
	"gateway/shared/host/placement"
	"gateway/shared/host/runtimeapi"
	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/testkit/awstest"
)

// edgeSecret is what the edge of these installations proves itself with.
const edgeSecret = "of-the-edge"

// templates are the environments that the stacks give to their processes, by a
// set of context values and the process's name.
func templates(t *testing.T) map[string]map[string]map[string]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "infra", "testdata", "environments.json"))
	if err != nil {
		t.Fatal(err)
	}
	var sets map[string]map[string]map[string]string
	if err := json.Unmarshal(raw, &sets); err != nil {
		t.Fatal(err)
	}
	return sets
}

// resolved is a variable's value with the emulators of what a deploy would put
// into it.
func resolved(t *testing.T, v string) string {
	t.Helper()
	v = strings.NewReplacer(
		"{{resolve:secretsmanager:{OriginSecret}:SecretString:current::}}", edgeSecret,
		"{{resolve:secretsmanager:{OriginSecret}:SecretString:previous::}}", "",
		"{OriginSecret}", "the-origin-secret",
		"{Bucket}", os.Getenv(onaws.EnvBucket), "{SealKey}", os.Getenv(onaws.EnvKey),
		"{Queueaudit}", os.Getenv(onaws.EnvAuditQueue), "{Queueusage}", os.Getenv(onaws.EnvUsageQueue), "{Queuebatches}", os.Getenv(onaws.EnvRunQueue), "{Queueexports}", os.Getenv(onaws.EnvExportQueue),
	).Replace(v)
	if left := regexp.MustCompile(`\{[^}]*\}`).FindString(v); left != "" {
		t.Errorf("nothing stands in for %s", left)
	}
	return v
}

// processEnv is what a deployed process finds in its environment: the template's
// variables, those that the platform itself sets, and where the emulators are.
func processEnv(t *testing.T, template map[string]string, provider, tools string) (env []string) {
	t.Helper()
	for name, v := range template {
		env = append(env, name+"="+resolved(t, v))
	}
	for _, name := range []string{"AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_KMS"} {
		env = append(env, name+"="+os.Getenv(name))
	}
	// The mock provider stands where a public host would.
	hosts := strings.TrimPrefix(template[onaws.EnvTrustedHosts]+","+provider, ",")
	allowed := strings.TrimPrefix(template[onaws.EnvEgress]+","+tools, ",") // where servers of MCP are
	env = slices.DeleteFunc(env, func(v string) bool {
		return strings.HasPrefix(v, onaws.EnvTrustedHosts+"=") || strings.HasPrefix(v, onaws.EnvEgress+"=")
	})
	return append(env, onaws.EnvTrustedHosts+"="+hosts, onaws.EnvEgress+"="+allowed,
		"AWS_REGION=eu-west-1", "AWS_DEFAULT_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=secret", "AWS_SESSION_TOKEN=session",
		"AWS_EXECUTION_ENV=AWS_Lambda_provided.al2023", "AWS_LAMBDA_FUNCTION_VERSION=$LATEST", "AWS_LAMBDA_LOG_FORMAT=JSON", "AWS_LAMBDA_LOG_LEVEL=INFO",
		"AWS_LAMBDA_INITIALIZATION_TYPE=on-demand", "_HANDLER=bootstrap", "LAMBDA_TASK_ROOT=/var/task", "LAMBDA_RUNTIME_DIR=/var/runtime",
		"PATH=/usr/local/bin:/usr/bin/:/bin:/opt/bin", "LANG=en_US.UTF-8", "TZ=:UTC")
}

// TestEveryProcessStartsAsDeployed starts each function's binary, and the
// container's, with exactly the environment of its template and gives it its
// sample event.
func TestEveryProcessStartsAsDeployed(t *testing.T) {
	sets := templates(t)
	dir := awstest.Functions(t)
	build(t, dir, append(functions(t), "container")...)
	for set, processes := range sets {
		t.Run(set, func(t *testing.T) {
			services := awstest.Start(t)
			t.Setenv(onaws.EnvTablePrefix, processes["chat"][onaws.EnvTablePrefix])
			mock := mockprovider.New(mockprovider.Options{})
			if _, err := mock.Listen("127.0.0.1:0"); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { mock.Close() })
			in := &installation{sqs: services.SQS, dir: dir}
			in.fill(t, mock.URL()+"/v1")
			provider := strings.TrimPrefix(mock.URL(), "http://")
			for _, name := range functions(t) {
				t.Run(name, func(t *testing.T) {
					template, ok := processes[name]
					if !ok {
						t.Fatal("no template has this function")
					}
					in.replay(t, name, processEnv(t, template, provider, in.tools))
				})
			}
			if len(processes) != len(functions(t))+1 {
				t.Errorf("%d processes are deployed, %d functions and the container are built", len(processes), len(functions(t)))
			}
			t.Run("tasks", func(t *testing.T) { in.tasks(t, processEnv(t, processes["repair"], provider, in.tools)) })
			t.Run("container", func(t *testing.T) { in.container(t, processEnv(t, processes["container"], provider, in.tools)) })
		})
	}
}

// replay starts a function and gives it events/<name>.json, as it comes through
// the edge.
func (in *installation) replay(t *testing.T, name string, env []string) {
	t.Helper()
	p := runtimeapi.Pool{Binary: filepath.Join(in.dir, name, "bootstrap"), Env: env, Log: testLog{t}}
	defer p.Close(t.Context())
	a, err := p.Invoke(t.Context(), throughEdge(t, name), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, places := placement.Families()
	switch places[name] {
	case placement.Stream:
		if a.Status != 200 || len(body) == 0 || !a.Stream {
			t.Errorf("%d %s", a.Status, body)
		}
	case placement.Buffered:
		var out struct{ StatusCode int }
		if err := json.Unmarshal(body, &out); err != nil || out.StatusCode != 200 {
			t.Errorf("%s: %v", body, err)
		}
	default: // a sample message that is no record comes back; a task has nothing to say
		if want := map[string]string{"repair": "null", "requeue": "null"}[name]; want != string(body) && !strings.Contains(string(body), "059f36b4-87a3-44ab-83d2-661975830a7d") {
			t.Errorf("%s", body)
		}
	}
	<-a.Settled
}

// throughEdge is a function's sample event with what the edge adds to requests.
func throughEdge(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "events", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var ev map[string]any
	if err := json.Unmarshal(raw, &ev); err != nil {
		t.Fatal(err)
	}
	if one, ok := ev["headers"].(map[string]any); ok {
		one["X-Gateway-Origin-Secret"] = edgeSecret
		ev["multiValueHeaders"].(map[string]any)["X-Gateway-Origin-Secret"] = []string{edgeSecret}
	}
	if raw, err = json.Marshal(ev); err != nil {
		t.Fatal(err)
	}
	return raw
}

// container starts the container and sends it the sample of chat, as the load
// balancer does. Its address and the folder of its journal are this machine's.
func (in *installation) container(t *testing.T, env []string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	env = slices.DeleteFunc(env, func(v string) bool {
		return strings.HasPrefix(v, "GATEWAY_JOURNAL=") || strings.HasPrefix(v, "AWS_LAMBDA")
	})
	var log output
	cmd := exec.Command(filepath.Join(in.dir, "container", "gateway"))
	cmd.Env = append(env, "GATEWAY_ADDR="+addr, "GATEWAY_JOURNAL="+t.TempDir())
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	deadline := time.Now().Add(time.Minute)
	for {
		if res, err := http.Get("http://" + addr + "/healthz"); err == nil {
			res.Body.Close()
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("it ended: %v\n%s", err, log.text())
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			t.Fatalf("it does not get ready: %s", log.text())
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+addr+"/v1/chat/completions", strings.NewReader(hello))
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]string{"x-gateway-api-key": workspaceKey, "x-gateway-provider": "@mock", "content-type": "application/json", "x-gateway-origin-secret": edgeSecret} {
		req.Header.Set(name, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body := whole(t, res); res.StatusCode != 200 {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := <-ended; err != nil {
		t.Errorf("%v\n%s", err, log.text())
	}
	if n := len(in.sqs.Messages("gateway-usage")); n == 0 {
		t.Errorf("%d usage events are queued", n)
	}
}

// tasks runs every task of the repair worker that a schedule names, with
// something to do for the one that seals.
func (in *installation) tasks(t *testing.T, env []string) {
	t.Helper()
	sc := store.Scope{Org: "default"}
	rec := in.dueKey(t)
	p := runtimeapi.Pool{Binary: filepath.Join(in.dir, "repair", "bootstrap"), Env: env, Log: testLog{t}}
	defer p.Close(t.Context())
	for _, task := range []string{"budgets", "outbox", "keys", "compact", "retain"} {
		a, err := p.Invoke(t.Context(), []byte(`{"task":"`+task+`"}`), time.Minute)
		if err != nil {
			t.Errorf("%s: %v", task, err)
			continue
		}
		if out, err := io.ReadAll(a.Body); err != nil || string(out) != "null" {
			t.Errorf("%s: %s %v", task, out, err)
		}
	}
	now, ok, err := in.core.Resources.Get(t.Context(), sc, identity.KindKey, rec.ID)
	if err != nil || !ok || !now.HasSecret(identity.UncollectedSecret) {
		t.Errorf("the key that was due has no new secret: %v", err)
	}
}

// dueKey makes a key whose rotation is due.
func (in *installation) dueKey(t *testing.T) resource.Record {
	t.Helper()
	sc := store.Scope{Org: "default"}
	due := time.Now().UTC().Add(-time.Hour)
	key := identity.Key{
		Type: identity.OrganisationService, Scopes: []string{"audit_logs.list"},
		Rotation: &identity.RotationPolicy{Period: "weekly", NextAt: &due},
	}
	_, key.Secret = identity.NewSecret()
	rec := resource.Record{Scope: sc, Kind: identity.KindKey, Name: "due", Status: identity.StatusActive}
	err := in.core.Resources.Change(t.Context(), sc, func(tx *resource.Tx) error {
		var err error
		if rec.Body, err = json.Marshal(key); err != nil {
			return err
		}
		if err := tx.Create(&rec); err != nil {
			return err
		}
		for kind, at := range identity.DueTimes(&key) {
			if err := resource.Schedule(tx, kind, at, rec.Ref()); err != nil {
				return err
			}
		}
		return identity.Stage(tx, &rec, &key, "")
	})
	if err != nil {
		t.Fatal(err)
	}
	return rec
}
