package ownership

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gateway/shared/provider"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
)

func TestAFingerprintIsOfTheAccountAndTellsNothing(t *testing.T) {
	t.Parallel()
	of := func(id, org, key, host string, fields map[string]string) string {
		p, _ := provider.ByID(id)
		a := Account{Provider: p, CustomHost: host, Credential: &provider.Credential{Key: key, Fields: fields}}
		return a.fingerprint(org)
	}
	own := of("openai", "o", "sk-0123456789", "", nil)
	for name, c := range map[string]struct {
		print string
		same  bool
	}{
		"again":                      {of("openai", "o", "sk-0123456789", "", nil), true},
		"with a header of its own":   {of("openai", "o", "sk-0123456789", "", map[string]string{"openai_beta": "x", "openai_organization": "y"}), true},
		"the host written out":       {of("openai", "o", "sk-0123456789", "https://API.openai.com:443/v1/", nil), true},
		"by another name":            {of("groq", "o", "sk-0123456789", "https://api.openai.com/v1", nil), true},
		"another key":                {of("openai", "o", "sk-0123456788", "", nil), false},
		"another organisation":       {of("openai", "p", "sk-0123456789", "", nil), false},
		"another host":               {of("openai", "o", "sk-0123456789", "https://other.example/v1", nil), false},
		"the key as a field's value": {of("modal", "o", "", "https://api.openai.com/v1", map[string]string{"modal_key": "sk-0123456789"}), false},
	} {
		if (c.print == own) != c.same {
			t.Errorf("%s: %v", name, !c.same)
		}
	}
	if strings.Contains(own, "0123456789") || len(own) < 40 {
		t.Errorf("%s", own)
	}
	aws := map[string]string{"aws_access_key_id": "AKIA", "aws_secret_access_key": "s", "aws_region": "us-east-1"}
	again := map[string]string{"aws_access_key_id": "AKIA", "aws_secret_access_key": "s", "aws_region": "us-east-1", "aws_session_token": "t", "aws_s3_bucket": "b"}
	if of("bedrock", "o", "", "", aws) != of("bedrock", "o", "", "", again) {
		t.Error("tokens and buckets make no other account")
	}
}

func newOwners(t *testing.T, now *time.Time) *Owners {
	tables, err := sqlite.Open(filepath.Join(t.TempDir(), "tables.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tables.Close() })
	return &Owners{Now: func() time.Time { return *now }, Table: tables.Table(store.Usage)}
}

// Rows below an integration are those from before objects were isolated by credential, and those
// that outlive a change of the credential.
func TestOwnersAreFoundByCredentialAndByIntegration(t *testing.T) {
	t.Parallel()
	now := time.Now()
	o := newOwners(t, &now)
	a, b := store.Scope{Org: "o", Workspace: "a"}, store.Scope{Org: "o", Workspace: "b"}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(o.Record(t.Context(), a, []string{"integration"}, "x", "old"))
	must(o.Record(t.Context(), a, []string{"print", "integration"}, "x", "new"))
	must(o.Record(t.Context(), b, []string{"print", "other"}, "x", "new", "theirs")) // the owner does not change
	for _, c := range []struct {
		places []string
		want   map[string]string
	}{
		{[]string{"print", "integration"}, map[string]string{"old": "a", "new": "a", "theirs": "b"}},
		{[]string{"print", "other"}, map[string]string{"new": "a", "theirs": "b"}},
		{[]string{"rotated", "integration"}, map[string]string{"old": "a", "new": "a"}},
	} {
		who, err := o.of(t.Context(), a, c.places, []string{"old", "new", "theirs", "none", "old"})
		must(err)
		if len(who) != len(c.want) {
			t.Errorf("%v: %v", c.places, who)
		}
		for id, ws := range c.want {
			if who[id] != ws {
				t.Errorf("%v: %s is of %q", c.places, id, who[id])
			}
		}
	}
}

func TestWhoElseUsesACredential(t *testing.T) {
	t.Parallel()
	now := time.Now()
	o := newOwners(t, &now)
	a, b, far := store.Scope{Org: "o", Workspace: "a"}, store.Scope{Org: "o", Workspace: "b"}, store.Scope{Org: "p", Workspace: "a"}
	uses := func(sc store.Scope, want bool) {
		t.Helper()
		if others, err := o.uses(t.Context(), sc, "print"); err != nil || others != want {
			t.Errorf("%v %v", others, err)
		}
	}
	uses(a, false)
	uses(a, false)
	uses(far, false)
	uses(b, true)
	uses(a, true)
	now = now.Add(usesRenewed + time.Hour)
	uses(a, true) // and starts again
	row, _, err := o.Table.Get(t.Context(), a.Organisation().Partition("CREDENTIAL", "print").Key("a"), true)
	if err != nil || row.Int("until") != now.Add(usesFor).Unix() {
		t.Errorf("%v %v", row, err)
	}
}
