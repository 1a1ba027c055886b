package routes

import (
	"strings"
	"testing"
)

func TestTableIsSound(t *testing.T) {
	t.Parallel()
	rows, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		path := strings.NewReplacer("**", "a/b", "*", "a").Replace(r.Path)
		if IsReserved(path) == r.Passes {
			t.Errorf("%s (%s): its own row does not decide", path, r.Path)
		}
		if before, ok := strings.CutSuffix(r.Path, "/**"); ok && IsReserved(before) == r.Passes && r.Path != "/oauth/**" && r.Path != "/deployments/**" {
			t.Errorf("%s: the row stands for the path itself too", before)
		}
	}
	for _, bad := range []string{"/a reserved", "a reserved why", "/A reserved why", "/a perhaps why", "/a passes x\n/a passes y"} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestSpellingsOfReservedPaths(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/guardrails", "/guardrails/", "//guardrails", "/guardrails//", "/guardrails//pg-1", "/./guardrails", "/x/../guardrails", "/../guardrails",
		"/Guardrails", "/GUARDRAILS/pg-1", "/%67uardrails", "/%2567uardrails", "/%252567uardrails", "/guardrails%2Fpg-1", "/%2Fguardrails", "/%2e/guardrails",
		"/x/%2e%2e/guardrails", "/guardrails;a=1", "/;a=1/guardrails", "/guardrails;a/pg-1", "/guardrails.", "/guardrails%20", "/%20guardrails", "/guardrails%00",
		`/\guardrails`, `/guardrails\pg-1`, "/%5Cguardrails", "/guardrails%3Fa", "/guardrails%23a", "/guardrails%zz/../../guardrails",
		"/v1/guardrails", "/v2/guardrails", "/v1/v1/guardrails", "/V1/guardrails", "/proxy/../guardrails", "/deployments/d1", "/deployments/d1/", "/deployments/d1/VERIFY",
		"/oauth/token", "/auth", "/auth/self", "/pricing/openai.json", "/general/openai.json",
	} {
		if !IsReserved(path) {
			t.Errorf("%s is passed through", path)
		}
	}
	for _, path := range []string{
		"", "/", "/v1", "/v1/", "/proxy/guardrails", "/proxy/v1/configs", "/guardrail/g1/version/1/apply", "/chat/completions", "/models/x", "/agents", "/agents/a1",
		"/deployments/gpt-4o/chat/completions", "/deployments/owner/name/predictions", "/openai/deployments", "/organization/users", "/organizations/workspaces",
		"/oauth/2.0/token", "/auth/key", "/accounts/a/deployments", "/configs-of-mine", "/x/configs", "/feedbacks", "/pricing", "/v1beta/models/x:generateContent", "/%zz",
	} {
		if IsReserved(path) {
			t.Errorf("%s is not passed through", path)
		}
	}
}

func FuzzTakes(f *testing.F) {
	f.Add("/guard%72ails;x/../..")
	f.Fuzz(func(t *testing.T, path string) {
		taken := IsReserved(path)
		if again := IsReserved(path + "/"); again != taken {
			t.Errorf("%q: %t, with a slash behind it %t", path, taken, again)
		}
	})
}

func BenchmarkTakes(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if IsReserved("/threads/thread_123/messages") || !IsReserved("/api-keys/123") {
			b.Fatal("wrong")
		}
	}
}
