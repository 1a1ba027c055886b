package migrate

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/lib/pq"

	"gateway/local/declare"
)

// Records are the rows of a LiteLLM proxy that are not in its file.
type Records struct {
	Organizations, Teams, Users, Keys, Budgets []map[string]any
}

// tables are where Records are stored.
var tables = []struct {
	name string
	of   func(*Records) *[]map[string]any
}{
	{"LiteLLM_OrganizationTable", func(r *Records) *[]map[string]any { return &r.Organizations }},
	{"LiteLLM_TeamTable", func(r *Records) *[]map[string]any { return &r.Teams }},
	{"LiteLLM_UserTable", func(r *Records) *[]map[string]any { return &r.Users }},
	{"LiteLLM_VerificationToken", func(r *Records) *[]map[string]any { return &r.Keys }},
	{"LiteLLM_BudgetTable", func(r *Records) *[]map[string]any { return &r.Budgets }},
}

// maxRecords bounds the rows of one table.
const maxRecords = 100_000

// Database reads the records of a LiteLLM proxy from its PostgreSQL database. It only reads.
func Database(ctx context.Context, address string) (*Records, error) {
	connector, err := pq.NewConnector(address)
	if err != nil {
		return nil, fmt.Errorf("the address of the database is not valid; use postgresql://user:password@host/name")
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("the database is not reachable: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	out := new(Records)
	for _, t := range tables {
		var there bool
		if err := tx.QueryRowContext(ctx, `SELECT to_regclass($1) IS NOT NULL`, `"`+t.name+`"`).Scan(&there); err != nil {
			return nil, fmt.Errorf("reading the database: %w", err)
		}
		if !there {
			continue // a version without it
		}
		if *t.of(out), err = rows(ctx, tx, t.name); err != nil {
			return nil, fmt.Errorf("reading %s: %w", t.name, err)
		}
	}
	if out.Keys == nil && out.Teams == nil && out.Users == nil {
		return nil, fmt.Errorf("the database has no tables of a LiteLLM proxy")
	}
	return out, nil
}

// rows reads a table as JSON objects, so that the columns of a version do not matter.
func rows(ctx context.Context, tx *sql.Tx, table string) ([]map[string]any, error) {
	result, err := tx.QueryContext(ctx, `SELECT row_to_json(t)::text FROM `+pq.QuoteIdentifier(table)+` t ORDER BY 1 LIMIT $1`, maxRecords+1)
	if err != nil {
		return nil, err
	}
	defer result.Close()
	all := []map[string]any{}
	for result.Next() {
		var text string
		if err := result.Scan(&text); err != nil {
			return nil, err
		}
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var row map[string]any
		if err := d.Decode(&row); err != nil {
			return nil, err
		}
		if all = append(all, row); len(all) > maxRecords {
			return nil, fmt.Errorf("has more than %d rows", maxRecords)
		}
	}
	return all, result.Err()
}

// AddRecords adds workspaces, people and keys to the result of an import: a team becomes a
// workspace with the models of the file, and the keys of no team go to the workspace of the
// import.
func (r *Result) AddRecords(rec *Records) {
	m := &accounts{r: r, budgets: byID(rec.Budgets, "budget_id"), organizations: byID(rec.Organizations, "organization_id"), spaces: map[string]string{}, main: MainWorkspace}
	for _, t := range rec.Teams {
		m.team(t)
	}
	for _, o := range rec.Organizations {
		m.line("organization", text(o, "organization_alias", "organization_id"), Changed, "part of the names of its teams' workspaces")
	}
	m.users(rec)
	for _, k := range rec.Keys {
		m.key(k)
	}
}

// accounts maps records to workspaces, people and keys.
type accounts struct {
	r                      *Result
	budgets, organizations map[string]map[string]any
	spaces                 map[string]string // team to the label of its workspace
	main                   string
}

func byID(rows []map[string]any, name string) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, row := range rows {
		out[text(row, name)] = row
	}
	return out
}

// text returns the first of these columns that is a text.
func text(row map[string]any, names ...string) string {
	for _, n := range names {
		if s, ok := row[n].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

func (m *accounts) line(kind, key string, s Status, note string) {
	m.r.Report.Lines = append(m.r.Report.Lines, Line{Key: "database." + kind + "." + key, Status: s, Note: note})
}

// limits maps budgets and rates of a record. notes describe differences.
func (m *accounts) limits(row map[string]any) (budget map[string]any, rates []any, notes []string) {
	from := row
	if b := m.budgets[text(row, "budget_id")]; b != nil && row["max_budget"] == nil {
		from = b
	}
	if amount, ok := from["max_budget"].(json.Number); ok {
		budget = map[string]any{"credit_limit": amount}
		if f, err := amount.Float64(); err != nil || f <= 0 {
			budget["credit_limit"] = json.Number("0.000000001")
			notes = append(notes, "a budget of zero is the smallest one")
		}
		reset, note := duration(text(from, "budget_duration"))
		if text(from, "budget_duration") == "" {
			reset, note = nil, ""
		}
		for k, v := range reset {
			budget[k] = v
		}
		if note != "" {
			notes = append(notes, note)
		}
		if spend, ok := row["spend"].(json.Number); ok && spend != "0" && spend != "0.0" {
			notes = append(notes, "what was spent ("+string(spend)+" US dollars) is not carried over")
		}
	}
	for _, l := range []struct{ column, kind string }{{"rpm_limit", "requests"}, {"tpm_limit", "tokens"}} {
		n, ok := from[l.column].(json.Number)
		if v, err := n.Int64(); ok && err == nil && v > 0 {
			rates = append(rates, map[string]any{"type": l.kind, "unit": "rpm", "value": v})
		}
	}
	if n, ok := row["max_parallel_requests"].(json.Number); ok && n != "0" {
		notes = append(notes, "max_parallel_requests is not mapped: use rate limits")
	}
	if list, _ := row["models"].([]any); len(list) > 0 && !slices.Contains(list, any("all-proxy-models")) && !slices.Contains(list, any("all-team-models")) {
		notes = append(notes, fmt.Sprintf("the restriction to %d models is not mapped: set model_settings of the workspace", len(list)))
	}
	return budget, rates, notes
}

func (m *accounts) team(t map[string]any) {
	name := text(t, "team_alias", "team_id")
	if o := m.organizations[text(t, "organization_id")]; o != nil {
		name = text(o, "organization_alias", "organization_id") + " / " + name
	}
	if t["blocked"] == true {
		m.line("team", name, NotMapped, "is blocked")
		return
	}
	budget, rates, notes := m.limits(t)
	w := &declare.Workspace{Slug: "team-" + text(t, "team_id"), Name: name, Fields: map[string]any{}, Sections: map[string][]*declare.Resource{}}
	if budget != nil {
		w.Fields["usage_limits"] = []any{budget}
	}
	if rates != nil {
		w.Fields["rate_limits"] = rates
	}
	for section, list := range m.r.Document.Workspaces[0].Sections {
		if section != "mcp_servers" && section != "mcp_integrations" { // their names are those of the organization
			w.Sections[section] = list
		}
	}
	for _, other := range m.r.Document.Workspaces {
		if other.Name == name {
			w.Name = name + " " + text(t, "team_id")
		}
	}
	m.spaces[text(t, "team_id")] = w.Slug
	m.r.Document.Workspaces = append(m.r.Document.Workspaces, w)
	m.line("team", name, status(notes), strings.Join(append([]string{"workspace " + w.Name}, notes...), "; "))
}

func status(notes []string) Status {
	if len(notes) > 0 {
		return Changed
	}
	return Mapped
}

// roles are the roles of users at the source.
var roles = map[string]string{"proxy_admin": "admin", "proxy_admin_viewer": "member", "org_admin": "member", "internal_user": "member", "internal_user_viewer": "member", "team": "member", "customer": "member"}

func (m *accounts) users(rec *Records) {
	teams := map[string][]declare.Membership{}
	for _, t := range rec.Teams {
		label := m.spaces[text(t, "team_id")]
		list, _ := t["members_with_roles"].([]any)
		for _, e := range list {
			member, _ := e.(map[string]any)
			role := "member"
			if text(member, "role") == "admin" {
				role = "manager"
			}
			if id := text(member, "user_id", "user_email"); id != "" && label != "" {
				teams[id] = append(teams[id], declare.Membership{Workspace: label, Role: role})
			}
		}
	}
	for _, u := range rec.Users {
		email, id := text(u, "user_email"), text(u, "user_id")
		role := roles[text(u, "user_role")]
		if !strings.Contains(email, "@") {
			m.line("user", text(u, "user_alias", "user_id"), NotMapped, "has no address to be invited at")
			continue
		}
		if role == "" {
			role = "member"
		}
		in := declare.Invite{Email: email, Role: role}
		for _, key := range []string{id, email} {
			in.Workspaces = append(in.Workspaces, teams[key]...)
		}
		if list, _ := u["teams"].([]any); len(in.Workspaces) == 0 {
			for _, t := range list {
				if label := m.spaces[fmt.Sprint(t)]; label != "" {
					in.Workspaces = append(in.Workspaces, declare.Membership{Workspace: label, Role: "member"})
				}
			}
		}
		if len(in.Workspaces) == 0 {
			in.Workspaces = []declare.Membership{{Workspace: m.main, Role: "member"}}
		}
		note := "is invited as " + role
		if u["max_budget"] != nil {
			note += "; the budget is not mapped: create a usage limit policy grouped by metadata._user"
		}
		m.line("user", email, Changed, note)
		m.r.Access.Invites = append(m.r.Access.Invites, in)
	}
}

// importedScopes are those of a key that only makes requests.
var importedScopes = []any{"completions.write", "models.list", "mcp.invoke", "virtual_keys.list"}

func (m *accounts) key(k map[string]any) {
	token := text(k, "token")
	name := text(k, "key_alias", "key_name")
	if name == "" || strings.HasPrefix(name, "sk-") {
		name = "imported " + token[:min(len(token), 12)]
	}
	if k["blocked"] == true {
		m.line("key", name, NotMapped, "is blocked")
		return
	}
	budget, rates, notes := m.limits(k)
	fields := map[string]any{"scopes": importedScopes, "description": "imported"}
	if budget != nil {
		fields["usage_limits"] = budget
	}
	if rates != nil {
		fields["rate_limits"] = rates
	}
	if at := text(k, "expires"); at != "" {
		if date, ok := future(at); ok {
			fields["expires_at"] = date
		} else {
			m.line("key", name, NotMapped, "has expired")
			return
		}
	}
	if metadata, ok := k["metadata"].(map[string]any); ok {
		texts := map[string]any{}
		for n, v := range metadata {
			if s, ok := v.(string); ok && s != "" {
				texts[n] = s
			}
		}
		if len(texts) > 0 {
			fields["defaults"] = map[string]any{"metadata": texts}
		}
	}
	to := m.main
	if team := text(k, "team_id"); team != "" && m.spaces[team] != "" {
		to = m.spaces[team]
	}
	for _, other := range m.r.Access.Keys {
		if other.Name == name && other.Workspace == to {
			name += " " + token[:min(len(token), 8)]
		}
	}
	m.line("key", name, Changed, strings.Join(append([]string{"a new key: the source has only the hash of the old one; see --keys-file"}, notes...), "; "))
	m.r.Access.Keys = append(m.r.Access.Keys, declare.Key{Source: token, Workspace: to, Name: name, Fields: fields})
}
