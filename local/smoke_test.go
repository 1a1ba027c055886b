package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// smoke runs scripts/smoke.sh in a folder with a command aws that answers for the
// stacks of a gateway; it gives what was printed and whether it passed.
func smoke(t *testing.T, dir, base, setup string, args ...string) (string, bool) {
	t.Helper()
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s: not allowed to be missing in CI", tool)
			}
			t.Skipf("SKIPPED: %s is not installed", tool)
		}
	}
	script, err := filepath.Abs("../scripts/smoke.sh")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	aws := fmt.Sprintf(`#!/bin/bash
case "$*" in
"cloudformation describe-stacks --stack-name of-ours-edge --query Stacks[0].Outputs[?OutputKey=='Address'].OutputValue --output text") echo %s ;;
"cloudformation describe-stacks --stack-name of-ours-workers --query Stacks[0].Outputs[?OutputKey=='SetupFunction'].OutputValue --output text") echo the-worker ;;
"lambda invoke --function-name the-worker --cli-binary-format raw-in-base64-out --payload {\"task\":\"setup\"} "*) %s ;;
*) echo "aws: $*" >&2; exit 254 ;;
esac
`, base, setup)
	if err := os.WriteFile(filepath.Join(bin, "aws"), []byte(aws), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", append([]string{script}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

func TestTheSmokeScript(t *testing.T) {
	t.Parallel()
	r := start(t)
	host := strings.TrimSuffix(r.base, "/v1")
	for name, address := range map[string]string{"as printed": r.base, "with a slash": r.base + "/", "the host alone": host, "the host and a slash": host + "/"} {
		if out, ok := smoke(t, t.TempDir(), "", "", address, workspaceKey, "@mock/gpt-4o-mini"); !ok || strings.Count(out, "\nok ")+1 < 6 {
			t.Errorf("%s:\n%s", name, out)
		}
	}
	if out, ok := smoke(t, t.TempDir(), "", "", r.base, "no-key", "@mock/gpt-4o-mini"); ok || !strings.Contains(out, "FAIL  models is 200: got 401") {
		t.Errorf("with a wrong key:\n%s", out)
	}
	for _, args := range [][]string{{}, {r.base}, {"--setup", "of-ours"}, {"--setup"}} {
		if out, ok := smoke(t, t.TempDir(), "", "", args...); ok || !strings.Contains(out, "scripts/smoke.sh ADDRESS") {
			t.Errorf("%q:\n%s", args, out)
		}
	}
}

func TestTheSmokeScriptSetsUp(t *testing.T) {
	t.Parallel()
	r := start(t)
	dir := t.TempDir()
	keys := fmt.Sprintf(`{"organisation":"default","workspace":"default","admin_key":"%s","workspace_key":"%s","note":"-"}`, adminKey, workspaceKey)
	made := `eval "file=\${$#}"; printf '%s' '` + keys + `' >"$file"; echo '{"StatusCode":200}'`
	out, ok := smoke(t, dir, r.base, made, "--setup", "of-ours", "@mock/gpt-4o-mini")
	if !ok || strings.Contains(out, adminKey) || strings.Contains(out, workspaceKey) {
		t.Errorf("it fails, or shows a key:\n%s", out)
	}
	info, err := os.Stat(filepath.Join(dir, "of-ours-keys.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of keys: %v %v", info, err)
	}
	if out, ok := smoke(t, dir, r.base, made, "--setup", "of-ours", "@mock/gpt-4o-mini"); ok || !strings.Contains(out, "already exists") {
		t.Errorf("a second time in that folder:\n%s", out)
	}
	refused := `eval "file=\${$#}"; echo '{"errorMessage":"setup is done once: ...","errorType":"fault"}' >"$file"; echo '{"FunctionError":"Unhandled"}'`
	if out, ok := smoke(t, t.TempDir(), r.base, refused, "--setup", "of-ours", "@mock/gpt-4o-mini"); ok || strings.TrimSpace(out) != "setup is done once: ..." {
		t.Errorf("refused:\n%s", out)
	}
	if out, ok := smoke(t, t.TempDir(), r.base, made, "--setup", "no-such", "@mock/gpt-4o-mini"); ok || !strings.Contains(out, "must be deployed") {
		t.Errorf("without stacks:\n%s", out)
	}
	custom := fmt.Sprintf(`{"provider":"openai","key":"mock-key-of-this-gateway","custom_host":"%s/v1"}`, r.mock.URL())
	if out, ok := smoke(t, t.TempDir(), r.base, made, "--setup", "of-ours", "gpt-4o-mini", custom); !ok {
		t.Errorf("with a provider:\n%s", out)
	}
	if out, ok := smoke(t, t.TempDir(), r.base, made, "--setup", "of-ours", "gpt-4o-mini", `{"provider":"nobody"}`); ok || !strings.Contains(out, "the provider is refused") {
		t.Errorf("with a bad provider:\n%s", out)
	}
}
