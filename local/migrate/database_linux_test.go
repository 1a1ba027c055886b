package migrate

import (
	"context"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// schema is the part of the source's tables that matters, with rows of each kind.
const schema = `
CREATE TABLE "LiteLLM_OrganizationTable" (organization_id text, organization_alias text);
CREATE TABLE "LiteLLM_BudgetTable" (budget_id text, max_budget double precision, budget_duration text, rpm_limit bigint, tpm_limit bigint);
CREATE TABLE "LiteLLM_TeamTable" (team_id text, team_alias text, organization_id text, max_budget double precision, budget_duration text, spend double precision, rpm_limit bigint, tpm_limit bigint, models text[], members_with_roles jsonb, blocked boolean);
CREATE TABLE "LiteLLM_UserTable" (user_id text, user_email text, user_alias text, user_role text, max_budget double precision, teams text[]);
CREATE TABLE "LiteLLM_VerificationToken" (token text, key_name text, key_alias text, team_id text, user_id text, budget_id text, max_budget double precision, budget_duration text, spend double precision, rpm_limit bigint, tpm_limit bigint, max_parallel_requests int, models text[], metadata jsonb, expires timestamp, blocked boolean);
INSERT INTO "LiteLLM_OrganizationTable" VALUES ('o1', 'Acme');
INSERT INTO "LiteLLM_BudgetTable" VALUES ('b1', 7.5, '30d', 10, NULL);
INSERT INTO "LiteLLM_TeamTable" VALUES ('t1', 'Search', 'o1', 100, '30d', 12.5, 60, 1000, '{}', '[{"role":"admin","user_id":"u1"},{"role":"user","user_id":"u2"}]', false), ('t2', 'Gone', NULL, NULL, NULL, 0, NULL, NULL, '{}', '[]', true);
INSERT INTO "LiteLLM_UserTable" VALUES ('u1', 'ann@example.com', NULL, 'proxy_admin', NULL, '{t1}'), ('u2', 'bob@example.com', NULL, 'internal_user', 5, '{t1}'), ('u3', NULL, 'robot', 'internal_user', NULL, '{}');
INSERT INTO "LiteLLM_VerificationToken" VALUES
 ('88dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b', 'sk-...abcd', 'ci', 't1', 'u1', NULL, 5, '7d', 1.25, 30, 5000, 4, '{gpt-4o}', '{"purpose":"ci","n":1}', '2099-01-01', NULL),
 ('b1dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b', 'sk-...efgh', NULL, NULL, NULL, 'b1', NULL, NULL, 0, NULL, NULL, NULL, '{}', '{}', NULL, false),
 ('c1dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b', 'sk-...ijkl', 'expired', NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, '{}', '{}', '2020-01-01', NULL),
 ('d1dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b', 'sk-...mnop', 'stopped', NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, '{}', '{}', NULL, true);
`

// postgres starts a PostgreSQL server and returns its address. The test is skipped only
// where no server is installed.
func postgres(t *testing.T) string {
	t.Helper()
	bin := ""
	for _, dir := range []string{"/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/16/bin", "/usr/lib/postgresql/17/bin", "/usr/local/bin"} {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil && bin == "" {
			bin = dir
		}
	}
	if bin == "" {
		t.Skip("no PostgreSQL server is installed")
	}
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	attr := &syscall.SysProcAttr{}
	owner := ""
	if os.Getuid() == 0 { // the server refuses to run as root
		u, err := user.Lookup("nobody")
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		owner = u.Username
	}
	run := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.SysProcAttr, cmd.Dir = attr, dir
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + dir, "USER=" + owner}
		return cmd
	}
	data := filepath.Join(dir, "data")
	if out, err := run("initdb", "-D", data, "-U", "litellm", "-A", "trust", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v: %s", err, out)
	}
	server := run("postgres", "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off")
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGINT)
		_ = server.Wait()
	})
	for try := 0; ; try++ {
		cmd := run("psql", "-h", dir, "-U", "litellm", "-d", "postgres", "-q", "-v", "ON_ERROR_STOP=1")
		cmd.Stdin = strings.NewReader(schema)
		out, err := cmd.CombinedOutput()
		if err == nil {
			break
		}
		if try > 200 || strings.Contains(string(out), "ERROR") {
			t.Fatalf("psql: %v: %s", err, out)
		}
		if err := exec.Command("sleep", "0.1").Run(); err != nil {
			t.Fatal(err)
		}
	}
	return "host=" + dir + " user=litellm dbname=postgres sslmode=disable"
}

func TestDatabaseOfLiteLLM(t *testing.T) {
	rec, err := Database(context.Background(), postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	checkRecords(t, rec)
}
