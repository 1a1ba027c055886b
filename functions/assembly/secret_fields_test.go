package assembly_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gateway/functions/assembly"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/audit"
	"gateway/shared/seal"
	"gateway/shared/store/sqlite"
	"gateway/shared/usage/segment"
)

const secretFieldsFile = "testdata/secret_fields.txt"

// addressName finds fields that may decide which host is called.
var addressName = regexp.MustCompile(`(?i)(url|uri|host|endpoint|addr|issuer|region|domain|proxy|vault|resource_?name|webhook)`)

var itemVariable = regexp.MustCompile(`/\{[^/]*\}$`)

var addressDoc = regexp.MustCompile(`(?i)\b(url|address|host|endpoint)\b`)

// TestEveryFieldWithASecretOrAnAddressIsClassified enumerates the body fields of all routes.
// Each that may contain a secret or determine the called host, by its description, name or
// type, is in testdata/secret_fields.txt with the rule that binds a stored secret to its
// address. Fields of providers are enumerated in shared/provider.
func TestEveryFieldWithASecretOrAnAddressIsClassified(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(secretFieldsFile)
	if err != nil {
		t.Fatal(err)
	}
	classes, used := map[string]string{}, map[string]bool{}
	for line := range strings.SplitSeq(string(raw), "\n") {
		if f := strings.Fields(line); len(f) > 0 && f[0] != "#" {
			if len(f) < 3 || !slices.Contains([]string{"secret", "address", "whole", "neither"}, f[2]) {
				t.Errorf("%s: a line has a path, a field, one of secret, address, whole and neither, and a reason", line)
				continue
			}
			classes[f[0]+" "+f[1]] = f[2]
		}
	}
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "tables.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	core := app.New(app.Backends{Store: s, Embedded: true, Sealer: seal.New(nil, time.Now)}, app.Settings{})
	var missing []string
	for _, family := range assembly.Administration(core, segment.New(s, nil, segment.Options{})) {
		for i := range family.Routes {
			r := &family.Routes[i]
			fieldsOf(r.Body, "", func(name string, f *admin.Field) {
				if !suspect(f) {
					return
				}
				key := itemVariable.ReplaceAllString(r.Path, "") + " " + name // bodies of create and update
				if used[key] = true; classes[key] == "" {
					missing = append(missing, key)
				}
				if f.Secret && classes[key] != "secret" || f.Address && classes[key] != "address" {
					t.Errorf("%s is described as a secret or an address, and classified as %s", key, classes[key])
				}
			})
		}
	}
	slices.Sort(missing)
	for _, key := range slices.Compact(missing) {
		t.Errorf("%s: not in %s: say what it is, and what keeps stored secrets at their address", key, secretFieldsFile)
	}
	for key := range classes {
		if !used[key] {
			t.Errorf("%s: %s names no such field", secretFieldsFile, key)
		}
	}
}

// TestSecretsOfTheEngineHaveAnAddress requires descriptions with a sealed field to name the
// field of the host that receives the secret.
func TestSecretsOfTheEngineHaveAnAddress(t *testing.T) {
	t.Parallel()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "tables.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	core := app.New(app.Backends{Store: s, Embedded: true, Sealer: seal.New(nil, time.Now)}, app.Settings{})
	found := 0
	for _, family := range assembly.Administration(core, segment.New(s, nil, segment.Options{})) {
		for i := range family.Routes {
			r := &family.Routes[i]
			if slices.ContainsFunc(r.Body, func(f admin.Field) bool { return f.Secret }) {
				found++
				if !slices.ContainsFunc(r.Body, func(f admin.Field) bool { return f.Address }) {
					t.Errorf("%s %s has a secret and no address", r.Method, r.Path)
				}
			}
		}
	}
	if found < 4 {
		t.Errorf("%d routes have secrets", found)
	}
}

// fieldsOf calls see for every field below fields, by its path.
func fieldsOf(fields []admin.Field, below string, see func(name string, f *admin.Field)) {
	for i := range fields {
		f := &fields[i]
		name := f.Name
		if below != "" {
			name = below + "." + f.Name
		}
		see(name, f)
		fieldsOf(f.Fields, name, see)
		if f.Of != nil {
			fieldsOf(f.Of.Fields, name+"[]", see)
		}
	}
}

// suspect reports whether a field may hold a secret or name a host. Flags and numbers hold
// none; objects that are open, and values of any type, may hold everything.
func suspect(f *admin.Field) bool {
	switch f.Type {
	case admin.Boolean, admin.Integer, admin.Number, admin.Timestamp:
		return false
	}
	if strings.HasPrefix(f.Doc, "Field ") && strings.HasSuffix(f.Doc, " of the provider.") {
		return false // enumerated by TestNoAddressChangesWithoutItsSecrets
	}
	return f.Secret || f.Address || audit.SecretName(f.Name) || addressName.MatchString(f.Name) || addressDoc.MatchString(f.Doc) ||
		f.Type == admin.Any || f.Type == admin.Object && (f.Open || len(f.Fields) == 0) || f.Type == admin.Map || len(f.Enum) == 0 && strings.Contains(fmt.Sprint(f.Doc), "secret")
}
