package admintest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/resource"
	"gateway/shared/seal/reference"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/testkit/managertest"
)

// SecretReference makes a secret reference of Org that is open to all workspaces.
func (h *Installation) SecretReference(slug string) {
	h.t.Helper()
	rec := resource.Record{Scope: store.Scope{Org: Org}, Kind: reference.Kind, Slug: slug, Name: slug, Status: "active",
		Body: []byte(`{"manager_type":"hashicorp_vault","auth_config":{"vault_auth_type":"token","vault_addr":"https://vault.example.com"},"secret_path":"kv/` + slug + `","allow_all_workspaces":true}`)}
	if err := h.Resources.Change(context.Background(), rec.Scope, func(tx *resource.Tx) error { rec.ID = ""; return tx.Create(&rec) }); err != nil {
		h.t.Fatal(err)
	}
}

// VaultReference stores a secret reference of Org to a member of the secret that
// NewVault has.
func (h *Installation) VaultReference(slug, address string) (of resource.Ref) {
	h.t.Helper()
	org := store.Scope{Org: Org}
	err := h.Resources.Change(context.Background(), org, func(tx *resource.Tx) error {
		rec := resource.Record{Scope: org, Kind: reference.Kind, ID: resource.NewID(), Slug: slug, Name: slug}
		form := reference.Reference{ManagerType: reference.Vault, Auth: map[string]string{"vault_auth_type": "token", "vault_addr": address}, SecretPath: "kv/a", SecretKey: "pass", AllowAll: true}
		var err error
		if rec.Body, err = json.Marshal(&form); err != nil {
			return err
		}
		if err := rec.SetSecret(context.Background(), Sealer{}, "vault_token", []byte(vaultToken)); err != nil {
			return err
		}
		of = rec.Ref()
		return tx.Create(&rec)
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return of
}

const vaultToken = "hvs.good-token"

// NewVault is a server of Vault that has a secret.
func NewVault(t testing.TB, secret string) *managertest.Vault {
	v := managertest.NewVault(t, time.Now)
	v.Do(func() {
		v.Tokens[vaultToken] = time.Now().Add(time.Hour)
		v.Secrets["kv/a"] = fmt.Sprintf(`{"pass":%q}`, secret)
	})
	return v
}

// Clock is a time that a test moves.
type Clock struct{ ahead atomic.Int64 }

// Now is the time of the clock.
func (c *Clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Advance moves it.
func (c *Clock) Advance(d time.Duration) { c.ahead.Add(int64(d)) }

// Users are the kinds and names of what uses a record.
func (h *Installation) Users(of resource.Ref) (names []string) {
	h.t.Helper()
	all, err := h.Resources.Users(context.Background(), of)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, by := range all {
		names = append(names, string(by.Kind)+" "+by.Name)
	}
	return names
}

// checkAuditLog compares each record that a test leaves with the state rebuilt from the audit log
// alone, with secrets masked.
func (h *Installation) checkAuditLog() {
	h.t.Helper()
	h.Audit()
	ctx, reader := context.Background(), audit.NewReader(h.Store, time.Now)
	for _, sc := range []store.Scope{{Org: Org}, {Org: Org, Workspace: h.One}, {Org: Org, Workspace: h.Two}, {Org: OtherOrg}, {Org: OtherOrg, Workspace: h.Three}} {
		q := store.Query{Partition: sc.Partition()}
		for {
			page, err := h.Store.Table(store.Control).Query(ctx, q)
			if err != nil {
				h.t.Fatal(err)
			}
			for _, row := range page.Rows {
				kind, id, ok := strings.Cut(row.Key.SK(), "#")
				if ok && row.Item["row"] != nil && row.Item["rev"] != nil && !strings.Contains(id, "#") {
					h.checkAuditLogOf(ctx, reader, sc, resource.Kind(kind), id)
				}
			}
			if page.Next == "" {
				break
			}
			q.After = page.Next
		}
	}
}

func (h *Installation) checkAuditLogOf(ctx context.Context, reader *audit.Reader, sc store.Scope, kind resource.Kind, id string) {
	h.t.Helper()
	rec, ok, err := h.Resources.Get(ctx, sc, kind, id)
	if err != nil || !ok {
		h.t.Fatalf("%s %s cannot be read: %v", kind, id, err)
	}
	got, ok, err := reader.At(ctx, sc.Org, id, time.Now().Add(100*365*24*time.Hour), func(k resource.Kind, ws string) bool { return k == kind && ws == sc.Workspace })
	if err != nil {
		h.t.Fatal(err)
	}
	want := audit.StateOf(&resource.Changed{Record: rec})
	want.At = got.At
	a, errA := json.Marshal(got)
	b, errB := json.Marshal(want)
	if errA != nil || errB != nil || !ok || string(a) != string(b) {
		h.t.Errorf("the audit trail tells of %s %s\n%s\nand it is\n%s", kind, id, a, b)
	}
}

// SetSettings stores settings of Org and lets the roles of users go by them from here on,
// as in an installation.
func (h *Installation) SetSettings(s tenant.Settings) {
	h.t.Helper()
	h.governed.Store(true)
	sc := store.Scope{Org: Org}
	err := h.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error {
		return tenant.AmendOrganisation(tx, sc, "", func(o *tenant.Organisation) error { o.Settings = s; return nil })
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// rights is what the stored settings state about a caller's role.
func (h *Installation) rights(ctx context.Context, c *admin.Caller, scope string) (allowed, decided bool, err error) {
	if !h.governed.Load() {
		return false, false, nil
	}
	err = h.Resources.Change(ctx, c.Scope.Organisation(), func(tx *resource.Tx) error {
		o, err := tenant.ReadSettings(tx, c.Scope)
		if err == nil {
			allowed, decided = o.Settings.Rule(string(c.Role), scope)
		}
		return err
	})
	return allowed, decided, err
}

// lenient reports whether the stored settings ignore unknown members.
func (h *Installation) lenient(ctx context.Context, org string) (lenient bool, err error) {
	if !h.governed.Load() {
		return false, nil
	}
	sc := store.Scope{Org: org}
	err = h.Resources.Change(ctx, sc, func(tx *resource.Tx) error {
		o, err := tenant.ReadSettings(tx, sc)
		if err == nil {
			lenient = o.Settings.Lenient
		}
		return err
	})
	return lenient, err
}

// Call is one request of Golden.
type Call struct{ key, method, path, body string }

// As is a call made with a key. An empty body sends none.
func As(key, method, path, body string) Call { return Call{key, method, path, body} }

// changing is what differs from run to run: ids and times, and slugs that were
// made of names.
var changing = regexp.MustCompile(`(?:pp|pg|col|default)-(?:[a-z0-9-]*-)?[0-9a-f]{6}\b|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|20\d\d-\d\d-\d\dT[0-9:.]+Z`)

// Golden makes the calls, which must all be answered with 200, and holds the
// answers against testdata/file, with ID, SLUG and TIME in place of what changes;
// update writes the file first.
func (h *Installation) Golden(update bool, file string, calls ...Call) {
	h.t.Helper()
	var out bytes.Buffer
	for _, c := range calls {
		fmt.Fprintf(&out, "%s %s\n", c.method, settled(c.path))
		var body any
		if c.body != "" {
			body = c.body
		}
		got := settled(string(h.Do(c.method, c.path, c.key, body).OK().Body))
		if err := json.Indent(&out, []byte(got), "", "  "); err != nil {
			h.t.Fatal(err)
		}
		out.WriteString("\n\n")
	}
	path := filepath.Join("testdata", file)
	if update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			h.t.Fatal(err)
		}
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			h.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		h.t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), out.String()); diff != "" {
		h.t.Errorf("the answers changed (-want +got):\n%s", diff)
	}
}

// settled is a text with what changes from run to run by its name.
func settled(text string) string {
	return changing.ReplaceAllStringFunc(text, func(s string) string {
		switch {
		case strings.HasSuffix(s, "Z"):
			return "TIME"
		case len(s) != len("00000000-0000-0000-0000-000000000000"):
			return "SLUG"
		}
		return "ID"
	})
}
