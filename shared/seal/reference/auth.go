package reference

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/seal/hostpin"
)

// Names of the fields of auth_config.
const (
	awsAuthType   = "aws_auth_type"
	azureAuthMode = "azure_auth_mode"
	vaultAuthType = "vault_auth_type"

	awsRegion      = "aws_region"
	azureVaultURL  = "azure_vault_url"
	vaultAddr      = "vault_addr"
	vaultNamespace = "vault_namespace"
	vaultTokenName = "vault_token"
	vaultRoleID    = "vault_role_id"
	vaultSecretID  = "vault_secret_id"
	vaultRole      = "vault_role"
)

// The ways to prove the caller's identity.
const (
	accessKey, assumedRole, serviceRole = "accessKey", "assumedRole", "serviceRole"
	entra, managed, standard            = "entra", "managed", "default"
	token, appRole, kubernetes          = "token", "approle", "kubernetes"
)

// Field is a field of auth_config.
type Field struct {
	Name     string
	Secret   bool
	Optional bool
	Place    bool                           // decides which host is called
	rule     func(e *edit, v string) string // "" or an error text
}

// mode is a way of calling a manager.
type mode struct {
	name   string
	fields []Field
}

// managers are the ways of calling each manager, by the field that names them.
var managers = map[string]struct {
	choice string
	modes  []mode
}{
	AWS: {awsAuthType, []mode{
		{accessKey, []Field{{Name: "aws_access_key_id", rule: visible}, {Name: "aws_secret_access_key", Secret: true, rule: visible}, {Name: awsRegion, Place: true, rule: label}}},
		{assumedRole, []Field{{Name: "aws_role_arn", rule: roleARN}, {Name: "aws_external_id", Optional: true, rule: visible}, {Name: awsRegion, Place: true, rule: label}}},
		{serviceRole, []Field{{Name: awsRegion, Optional: true, Place: true, rule: label}}},
	}},
	Azure: {azureAuthMode, []mode{
		{entra, []Field{{Name: "azure_entra_tenant_id", Place: true, rule: segment}, {Name: "azure_entra_client_id", rule: visible}, {Name: "azure_entra_client_secret", Secret: true, rule: visible}, {Name: azureVaultURL, Place: true, rule: anyVault}}},
		{managed, []Field{{Name: "azure_managed_client_id", Optional: true, rule: visible}, {Name: azureVaultURL, Place: true, rule: azureVault}}},
		{standard, []Field{{Name: azureVaultURL, Place: true, rule: azureVault}}},
	}},
	Vault: {vaultAuthType, []mode{
		{token, []Field{{Name: vaultAddr, Place: true, rule: address}, {Name: vaultTokenName, Secret: true, rule: visible}, {Name: vaultNamespace, Optional: true, rule: namespace}}},
		{appRole, []Field{{Name: vaultAddr, Place: true, rule: address}, {Name: vaultRoleID, rule: visible}, {Name: vaultSecretID, Secret: true, rule: visible}, {Name: vaultNamespace, Optional: true, rule: namespace}}},
		{kubernetes, []Field{{Name: vaultAddr, Place: true, rule: address}, {Name: vaultRole, rule: visible}, {Name: vaultNamespace, Optional: true, rule: namespace}}},
	}},
}

// maxAuth bounds a field of auth_config, in bytes.
const maxAuth = 8192

// maskedPrefix begins the fields that reads show in place of secrets.
const maskedPrefix = "masked_"

// Secrets are the names of all fields that are sealed.
func Secrets() []string {
	var out []string
	for _, m := range managers {
		for _, w := range m.modes {
			for _, f := range w.fields {
				if f.Secret {
					out = append(out, f.Name)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// URLCheck rejects addresses that must not be reached, such as
// egress.Policy.CheckURL, and gives the others in their one spelling.
type URLCheck func(raw, field string) (*url.URL, error)

// edit is a change of auth_config in progress.
type edit struct {
	r       *Reference
	changes map[string]any
	has     func(secret string) bool
	check   URLCheck
	bad     []fault.Detail
}

// SetAuth merges given into the reference's auth_config, field by field: null or "" removes
// one. A change of the manager's address requires the secrets that are sent there. secrets are
// those to be sealed, nil for one to be removed; has reports which are sealed already. Fields
// that the chosen method does not use are dropped if they were stored, and rejected if they
// were given. Fields that start with masked_ come from reads, and are ignored.
func (r *Reference) SetAuth(changes map[string]any, has func(secret string) bool, check URLCheck) (secrets map[string]*string, bad []fault.Detail) {
	m, ok := managers[r.ManagerType]
	if !ok {
		return nil, []fault.Detail{{Field: "manager_type", Message: "must be aws_sm, azure_kv or hashicorp_vault"}}
	}
	e := &edit{r: r, changes: changes, has: has, check: check}
	plain := maps.Clone(r.Auth)
	if plain == nil {
		plain = map[string]string{}
	}
	selected := plain[m.choice]
	if v, there := changes[m.choice]; there {
		selected, _ = v.(string)
	}
	names := make([]string, len(m.modes))
	at := -1
	for i := range m.modes {
		if names[i] = m.modes[i].name; names[i] == selected {
			at = i
		}
	}
	if at < 0 {
		e.fail(m.choice, "must be %s", strings.Join(names, ", "))
		return nil, e.bad
	}
	e.rejectOthers(m.choice, &m.modes[at])
	next := map[string]string{m.choice: selected}
	secrets = map[string]*string{}
	for i := range m.modes[at].fields {
		e.field(&m.modes[at].fields[i], plain, next, secrets)
	}
	for _, name := range Secrets() {
		if _, present := secrets[name]; !present && has(name) && !m.modes[at].knows(name) {
			secrets[name] = nil
		}
	}
	if len(e.bad) > 0 {
		return nil, e.bad
	}
	if refused := fault.From(m.modes[at].pinned(r.Auth, next, secrets, has).Check()); refused != nil {
		return nil, refused.Details
	}
	r.Auth = next
	return secrets, nil
}

// pinned is the change as hostpin judges it: secrets that stay sealed are sent to the hosts
// that the fields name.
func (m *mode) pinned(was, now map[string]string, sent map[string]*string, has func(secret string) bool) *hostpin.Change {
	ch := &hostpin.Change{}
	for i := range m.fields {
		f := &m.fields[i]
		at := "auth_config." + f.Name
		if f.Place {
			ch.Addresses = append(ch.Addresses, hostpin.Address{Field: at, Was: was[f.Name], Now: now[f.Name], Open: true})
		}
		if _, present := sent[f.Name]; f.Secret && !present && has(f.Name) {
			ch.Retained = append(ch.Retained, at)
		}
	}
	return ch
}

func (m *mode) knows(name string) bool {
	return slices.ContainsFunc(m.fields, func(f Field) bool { return f.Name == name })
}

func (e *edit) fail(name, format string, args ...any) {
	e.bad = append(e.bad, fault.Detail{Field: "auth_config." + name, Message: fmt.Sprintf(format, args...)})
}

// rejectOthers rejects fields that the chosen way does not know.
func (e *edit) rejectOthers(choice string, m *mode) {
	for _, name := range slices.Sorted(maps.Keys(e.changes)) {
		if name != choice && !m.knows(name) && !strings.HasPrefix(name, maskedPrefix) && e.changes[name] != nil {
			e.fail(name, "is not a field of %s %s", choice, m.name)
		}
	}
}

// field decides the new value of one field.
func (e *edit) field(f *Field, plain, next map[string]string, secrets map[string]*string) {
	v, present := e.changes[f.Name]
	text, isText := v.(string)
	switch {
	case present && v != nil && !isText:
		e.fail(f.Name, "must be a string")
		return
	case !present && f.Secret && e.has(f.Name):
		return
	case !present:
		text = plain[f.Name]
	}
	switch {
	case text == "" && !f.Optional:
		e.fail(f.Name, "is required")
		return
	case text == "":
		return
	case len(text) > maxAuth:
		e.fail(f.Name, "must have at most %d bytes", maxAuth)
		return
	}
	if why := f.rule(e, text); why != "" {
		e.fail(f.Name, "%s", why)
		return
	}
	if f.Secret {
		secrets[f.Name] = &text
		return
	}
	if f.Name == azureVaultURL || f.Name == vaultAddr {
		text = strings.TrimRight(text, "/")
	}
	next[f.Name] = text
}

// Rules for fields.

func visible(_ *edit, v string) string {
	for i := range len(v) {
		if v[i] <= ' ' || v[i] >= 0x7f {
			return "must contain only visible ASCII characters"
		}
	}
	return ""
}

func label(_ *edit, v string) string {
	if len(v) > 63 || strings.Trim(v, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || v[0] == '-' || v[len(v)-1] == '-' {
		return "must contain only lower-case letters, digits and -"
	}
	return ""
}

func segment(_ *edit, v string) string {
	if strings.Trim(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") != "" || v == "." || v == ".." {
		return "must contain only letters, digits, dot, - and _"
	}
	return ""
}

func roleARN(e *edit, v string) string {
	rest, ok := strings.CutPrefix(v, "arn:")
	if !ok || !strings.Contains(rest, ":iam::") || !strings.Contains(rest, ":role/") || visible(e, v) != "" {
		return "must be the ARN of an IAM role"
	}
	return ""
}

func namespace(e *edit, v string) string {
	if why := visible(e, v); why != "" {
		return why
	}
	return ""
}

func address(e *edit, v string) string {
	u, err := e.check(v, "auth_config."+vaultAddr)
	if err != nil {
		return fault.From(err).Message
	}
	if u.RawQuery != "" {
		return "must not have a query"
	}
	return ""
}

func anyVault(e *edit, v string) string {
	u, err := e.check(v, "auth_config."+azureVaultURL)
	if err != nil {
		return fault.From(err).Message
	}
	if strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return "must be the address of a vault without a path, such as https://name.vault.azure.net"
	}
	return ""
}

// azureVault is a vault at Azure's own hosts: proofs of the gateway's identity are sent to
// no other host.
func azureVault(e *edit, v string) string {
	if why := anyVault(e, v); why != "" {
		return why
	}
	u, err := url.Parse(v)
	if err != nil || u.Scheme != "https" || u.Port() != "" || cloudOf(u.Hostname()) == "" {
		return "must be https://<name>.vault.azure.net with this azure_auth_mode"
	}
	return ""
}

// clouds are the hosts of key vaults.
var clouds = []string{"vault.azure.net", "vault.azure.cn", "vault.usgovcloudapi.net"}

// cloudOf is the cloud to which a vault's host belongs; "" for other hosts.
func cloudOf(host string) string {
	for _, c := range clouds {
		if name, ok := strings.CutSuffix(strings.ToLower(host), "."+c); ok && name != "" && !strings.Contains(name, ".") {
			return c
		}
	}
	return ""
}

// CheckPath validates the path of the secret; it returns "" or the fault.
func (r *Reference) CheckPath() string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	p := r.SecretPath
	switch r.ManagerType {
	case AWS:
		if strings.Trim(p, letters+"/_+=.@-:") != "" || len(p) > 2048 {
			return "must be the name or the ARN of a secret"
		}
	case Azure:
		name, version, versioned := strings.Cut(p, "/")
		if name == "" || len(name) > 127 || strings.Trim(name, letters+"-") != "" || versioned && (version == "" || strings.Trim(version, letters) != "") {
			return "must be the name of a secret, or name/version"
		}
	case Vault:
		for _, s := range strings.Split(strings.Trim(p, "/"), "/") {
			if s == "" || s == "." || s == ".." {
				return "must be a path such as secret/data/name"
			}
		}
		for i := range len(p) {
			if p[i] < ' ' || p[i] >= 0x7f || p[i] == '?' || p[i] == '#' || p[i] == '%' || p[i] == '\\' {
				return "must contain only ASCII characters without ? # % and \\"
			}
		}
	}
	return ""
}

// FieldNames are the names of all fields that auth_config may have, except those of
// Choices.
func FieldNames() []string {
	var out []string
	for _, m := range managers {
		for _, w := range m.modes {
			for _, f := range w.fields {
				out = append(out, f.Name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Choices are the fields that choose a way of calling, with their values.
func Choices() map[string][]string {
	out := map[string][]string{}
	for _, m := range managers {
		for _, w := range m.modes {
			out[m.choice] = append(out[m.choice], w.name)
		}
	}
	return out
}
