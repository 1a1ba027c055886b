package analytics

import (
	"maps"
	"slices"
	"strings"
	"time"

	"gateway/shared/admin"
	"gateway/shared/admin/usagequery"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/route/health"
	"gateway/shared/route/rotation"
	"gateway/shared/store"
	"gateway/shared/usage"
	"gateway/shared/usage/report"
)

// Bounds of what the health of providers is judged by.
const (
	healthWindow = time.Hour // so that it is known since when; calls older than 15 minutes say nothing of now
	healthLogs   = 5000      // the newest ones of it
)

// ProviderHealth is the health of a saved provider.
type ProviderHealth struct {
	Slug      string         `json:"slug"`
	Workspace string         `json:"workspace_id"`
	Status    string         `json:"status" enum:"healthy,degraded,unhealthy,unknown" doc:"Based on the last 20 calls within 15 minutes. unhealthy: three consecutive failures, or more than half of at least 5 calls failed. degraded: the last call, or more than a tenth of at least 5, failed, or several took more than 4 times the mean. unknown: no calls."`
	Cause     *string        `json:"cause" doc:"null: healthy."`
	Since     *admin.Instant `json:"since" doc:"null: there were no calls in the last hour."`
	Calls     int            `json:"calls"`
	Failures  int            `json:"failures" doc:"No response, 401, 402, 403, 408, 429 and 500 and above."`
	Latency   *float64       `json:"latency_ms" doc:"Mean of the successful calls."`
	// Credentials are those of an integration with several.
	Credentials []CredentialHealth `json:"credentials" doc:"Of an integration with several; empty with one key."`
}

// CredentialHealth is the health of one of several credentials.
type CredentialHealth struct {
	Label  string         `json:"label"`
	Status string         `json:"status" enum:"healthy,degraded,unhealthy,unknown" doc:"As for the provider. unhealthy also means that it was rejected with 401, and is skipped until a test of the provider succeeds with it or its key is saved again."`
	Cause  *string        `json:"cause" doc:"null: healthy."`
	Since  *admin.Instant `json:"since"`
}

// healthResponse lists the providers of a workspace, or of all.
type healthResponse struct {
	Object string           `json:"object" enum:"list"`
	Data   []ProviderHealth `json:"data" doc:"By workspace and slug."`
	Total  int              `json:"total"`
}

// health is the route of the health of saved providers.
func (f *family) health() admin.Route {
	return admin.Route{
		Method: "GET", Path: "/providers/health", Name: "getProvidersHealth",
		Doc:    "Read the health of the workspace's saved providers, based on recorded calls; it makes none. Without a workspace, of all workspaces of the organization.",
		Scopes: []string{"providers.list", "virtual_keys.list"}, Level: admin.InWorkspace, OrgKeyWithoutWorkspace: true, ResponseOf: admin.SchemaOf[healthResponse],
		Do: func(c *admin.Call) (any, error) {
			scopes, err := admin.WorkspaceScopes(c)
			if err != nil {
				return nil, err
			}
			out := healthResponse{Object: "list", Data: []ProviderHealth{}}
			for _, sc := range scopes {
				of, err := f.healthIn(c, sc)
				if err != nil {
					return nil, err
				}
				out.Data = append(out.Data, of...)
			}
			out.Total = len(out.Data)
			return out, nil
		},
	}
}

// healthIn judges the providers of one workspace.
func (f *family) healthIn(c *admin.Call, sc store.Scope) ([]ProviderHealth, error) {
	rows, err := c.Resources.List(c.Context, sc, provider.KindProvider)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	calls := map[string][]health.Call{}
	q := report.LogQuery{Filter: report.Filter{From: c.Now.Add(-healthWindow), To: c.Now}, Limit: healthLogs, NoTotal: true}
	_, err = f.reader.EachLog(c.Context, sc, &q, func(rec *usage.Record) (bool, error) {
		for i := range rec.Attempts {
			a := &rec.Attempts[i]
			if a.ProviderSlug != "" && a.ErrorCode != usage.Superseded {
				calls[a.ProviderSlug] = append(calls[a.ProviderSlug], health.Call{At: rec.Start.Add(a.Start + a.Latency), Status: a.Status, Code: a.ErrorCode, Latency: a.Latency, Credential: a.Credential})
			}
		}
		return true, nil
	})
	if err != nil {
		return nil, usagequery.Failed(err)
	}
	several, err := severalCredentials(c, sc, rows)
	if err != nil {
		return nil, err
	}
	return healthOf(sc.Workspace, rows, calls, several, c.Now), nil
}

// credentials are the labels of a provider's credentials, and when some of them were rejected.
type credentials struct {
	labels   []string
	rejected map[string]time.Time
}

// severalCredentials returns the credentials of the providers that have several, by slug.
func severalCredentials(c *admin.Call, sc store.Scope, rows []resource.Row) (map[string]credentials, error) {
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	records, err := c.Resources.GetMany(c.Context, sc, provider.KindProvider, ids)
	if err != nil {
		return nil, err
	}
	slugs := map[store.Scope]map[string][]string{} // by scope and id of the integration
	for i := range records {
		in, err := provider.DecodeInstance(records[i])
		if err != nil {
			return nil, err
		}
		of := in.IntegrationScope(sc)
		if slugs[of] == nil {
			slugs[of] = map[string][]string{}
		}
		slugs[of][in.IntegrationID] = append(slugs[of][in.IntegrationID], records[i].Slug)
	}
	out := map[string]credentials{}
	for of, by := range slugs {
		integrations, err := c.Resources.GetMany(c.Context, of, provider.KindIntegration, slices.Collect(maps.Keys(by)))
		if err != nil {
			return nil, err
		}
		for i := range integrations {
			form, err := provider.DecodeIntegration(integrations[i])
			if err != nil {
				return nil, err
			}
			if len(form.Credentials) == 0 {
				continue
			}
			var one credentials
			for _, cred := range form.Credentials {
				one.labels = append(one.labels, cred.Label)
			}
			if one.rejected, err = rotation.Refusals(c.Context, c.Resources.Store().Table(store.Usage), of, integrations[i].ID, form.Credentials); err != nil {
				return nil, err
			}
			for _, slug := range by[integrations[i].ID] {
				out[slug] = one
			}
		}
	}
	return out, nil
}

// healthOf judges each provider of a workspace by its calls and its credentials.
func healthOf(workspace string, rows []resource.Row, calls map[string][]health.Call, several map[string]credentials, now time.Time) []ProviderHealth {
	out := make([]ProviderHealth, 0, len(rows))
	for _, row := range rows {
		own := calls[row.Slug]
		slices.SortStableFunc(own, func(a, b health.Call) int { return a.At.Compare(b.At) })
		s, each := health.JudgeCredentials(health.Judge(own, now), several[row.Slug].labels, own, several[row.Slug].rejected, now)
		one := ProviderHealth{Slug: row.Slug, Workspace: workspace, Status: s.Status, Calls: s.Calls, Failures: s.Failures, Credentials: make([]CredentialHealth, len(each))}
		one.Cause, one.Since = causeOf(&s)
		for i := range each {
			one.Credentials[i] = CredentialHealth{Label: each[i].Label, Status: each[i].Status}
			one.Credentials[i].Cause, one.Credentials[i].Since = causeOf(&each[i].State)
		}
		if s.Latency > 0 {
			ms := float64(s.Latency.Microseconds()) / 1000
			one.Latency = &ms
		}
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b ProviderHealth) int { return strings.Compare(a.Slug, b.Slug) })
	return out
}

// causeOf returns the cause and the beginning of a state; nil if there is none.
func causeOf(s *health.State) (*string, *admin.Instant) {
	var cause *string
	if s.Cause != "" {
		cause = &s.Cause
	}
	if s.Since.IsZero() {
		return cause, nil
	}
	since := admin.Instant(s.Since)
	return cause, &since
}
