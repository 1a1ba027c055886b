package providers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/route/rotation"
	"gateway/shared/route/saved"
	"gateway/shared/store"
)

// Limits of a test.
const (
	probeTime = 20 * time.Second
	probeSize = 4 << 20 // bytes of a list of models
)

// Causes of a failed test.
const (
	causeSettings    = "settings"    // of the provider or its integration
	causeCredentials = "credentials" // which the provider rejects
	causeNetwork     = "network"     // the host cannot be reached
	causeProvider    = "provider"    // it responds with an error of its own
	causeUnsupported = "unsupported" // it has no list of models
)

// probeResult is the outcome of a test.
type probeResult struct {
	Object      string             `json:"object"`
	Success     bool               `json:"success"`
	Cause       *string            `json:"cause" enum:"settings,credentials,network,provider,unsupported" doc:"What failed: settings of the provider or its integration, credentials that it rejects, the network on the way, or the provider itself. unsupported: it has no list of models, so that only a request can test it."`
	Message     *string            `json:"message" doc:"What failed, and what to do."`
	Status      *int               `json:"status_code" doc:"Of the provider's response."`
	Host        *string            `json:"host"`
	Models      *int               `json:"models" doc:"How many models the provider lists."`
	Millis      int64              `json:"response_time_ms"`
	Credentials []credentialResult `json:"credentials" doc:"Of an integration with several; empty with one key. The fields above are those of the first one that failed, or else of the first one."`
}

// credentialResult is the outcome of a test of one of several credentials.
type credentialResult struct {
	Label   string  `json:"label"`
	Success bool    `json:"success"`
	Cause   *string `json:"cause" enum:"settings,credentials,network,provider,unsupported"`
	Message *string `json:"message"`
	Status  *int    `json:"status_code"`
	Models  *int    `json:"models"`
	Millis  int64   `json:"response_time_ms"`
	Refused *bool   `json:"refused" doc:"Whether requests skip the credential after this test: it was rejected with 401 while the provider accepted another one. null: the test did not show it, and nothing has changed."`
}

// failed returns the result of a test that failed.
func (r probeResult) failed(cause, format string, args ...any) *probeResult {
	message := fmt.Sprintf(format, args...)
	r.Cause, r.Message = &cause, &message
	return &r
}

// probeRoute tests the providers of a collection.
func (f *family) probeRoute(col *instances, name string) []admin.Route {
	return col.ItemRoutes(admin.Route{
		Method: "POST", Path: col.Path + "/{slug}/test", Name: name, Action: audit.Test, ResponseOf: admin.SchemaOf[probeResult], Do: col.WithItem("update", func(c *admin.Call) (any, error) {
			it, err := col.Find(c)
			if err != nil {
				return nil, err
			}
			return f.probe(c, "provider-test", it.Scope, func(v *resource.View) (*saved.Provider, error) {
				return saved.Load(c.Context, v, it.Scope, it.Slug, c.Now)
			})
		}),
		Doc: "Test a provider by its list of models, which costs nothing, and report what failed: the settings, the credentials, the network or the provider. Each of several credentials of its integration is tested: requests use a rejected one again once the provider accepts it, and skip one that is rejected with 401 while another one is accepted.",
	})
}

// integrationProbe tests integrations, which are otherwise served by a family of their own: only
// this one may open credentials.
func (f *family) integrationProbe() []admin.Route {
	col := &admin.Collection[provider.Integration]{
		Kind: provider.KindIntegration, Object: "integration", Path: "/integrations", Param: "slug", Resource: "integrations", WriteRole: admin.Manager,
		Levels: &admin.Levels[provider.Integration]{Organisation: "organisation_integrations", Workspace: "workspace_integrations"},
	}
	return col.ItemRoutes(admin.Route{
		Method: "POST", Path: "/integrations/{slug}/test", Name: "testIntegration", Action: audit.Test, ResponseOf: admin.SchemaOf[probeResult], Do: col.WithItem("update", func(c *admin.Call) (any, error) {
			it, err := col.Find(c)
			if err != nil {
				return nil, err
			}
			return f.probe(c, "integration-test", it.Scope, func(v *resource.View) (*saved.Provider, error) { return saved.OfIntegration(c.Context, v, *it.Record) })
		}),
		Doc: "Test an integration by the list of models of its provider, as POST /providers/{slug}/test does, also before a workspace has a provider of it.",
	})
}

// probe requests the list of models of a provider with each of its saved credentials.
func (f *family) probe(c *admin.Call, object string, sc store.Scope, load func(*resource.View) (*saved.Provider, error)) (*probeResult, error) {
	result := probeResult{Object: object, Credentials: []credentialResult{}}
	v, err := f.Loader.Fresh(c.Context, sc.Org)
	if err != nil {
		return nil, err
	}
	s, err := load(v)
	if fault.Is(err, fault.NotAllowed) {
		return result.failed(causeSettings, "%s", fault.From(err).Message), nil
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.Context, probeTime)
	defer cancel()
	opened, err := s.Open(ctx, &saved.Deps{Sealer: c.Sealer, Secrets: f.Secrets, View: v, Scope: sc, Now: c.Now})
	if err != nil {
		return rejected(result, err)
	}
	if len(opened.Credentials) == 0 {
		return f.probeWith(ctx, result, s, opened.Credential)
	}
	return f.probeEach(ctx, c, result, s, opened.Credentials)
}

// probeEach tests all credentials at the same time, since they share the time limit, and stores
// which of them are rejected.
func (f *family) probeEach(ctx context.Context, c *admin.Call, result probeResult, s *saved.Provider, list []rotation.Entry) (*probeResult, error) {
	results, errs := make([]*probeResult, len(list)), make([]error, len(list))
	var wait sync.WaitGroup
	for i := range list {
		wait.Go(func() { results[i], errs[i] = f.probeWith(ctx, result, s, list[i].Credential) })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	shown, accepted := results[0], false
	for i := len(results) - 1; i >= 0; i-- {
		if accepted = accepted || results[i].Success; !results[i].Success {
			shown = results[i]
		}
	}
	all := make([]credentialResult, len(list))
	for i, r := range results {
		all[i] = credentialResult{Label: list[i].Label, Success: r.Success, Cause: r.Cause, Message: r.Message, Status: r.Status, Models: r.Models, Millis: r.Millis}
		// If every key is rejected, the cause may be the list of models itself, and no key would
		// be left for requests.
		refused := !r.Success && r.Status != nil && *r.Status == http.StatusUnauthorized && accepted
		if !r.Success && !refused {
			continue
		}
		if err := rotation.Tested(c.Context, c.Resources.Store().Table(store.Usage), s.IntegrationScope(), s.IntegrationID, list[i].ID, refused, c.Now); err != nil {
			return nil, err
		}
		all[i].Refused = &refused
	}
	shown.Credentials = all
	return shown, nil
}

// probeWith requests the list of models with one credential.
func (f *family) probeWith(ctx context.Context, result probeResult, s *saved.Provider, with *provider.Credential) (*probeResult, error) {
	t := &provider.Target{
		Provider: s.Provider, Credential: *with, CustomHost: s.CustomHost, CustomHeaders: s.CustomHeaders, Saved: true,
		Signer: f.Tokens, TrustedTransport: f.TrustedTransport,
	}
	address, err := modelsURL(t)
	if err != nil {
		return rejected(result, err)
	}
	if address == "" {
		return result.failed(causeUnsupported, "%s has no list of models; only a request through a provider can test it", s.Provider.Name), nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return result.failed(causeSettings, "custom_host is not an address"), nil
	}
	result.Host = admin.NullIfZero(req.URL.Host)
	if err := t.Authorize(ctx, req, nil); err != nil {
		return rejected(result, err)
	}
	via := f.Transport
	if own, _ := t.OwnHost(); own != "" {
		via = f.TrustedTransport
	}
	began := time.Now()
	resp, err := via.RoundTrip(req)
	result.Millis = time.Since(began).Milliseconds()
	if err != nil {
		return unreachable(result, err), nil
	}
	defer resp.Body.Close()
	return readProbe(result, s.Provider.Name, resp), nil
}

// rejected is the result of a failure before the call: of settings, or of a token service or
// secret manager. A failure of the gateway is returned.
func rejected(result probeResult, err error) (*probeResult, error) {
	f := fault.From(err)
	switch {
	case f.Status() < http.StatusInternalServerError:
		return result.failed(causeSettings, "%s", f.Message), nil
	case fault.Is(err, fault.ProviderError):
		return result.failed(causeCredentials, "%s", f.Message), nil
	}
	return nil, err
}

// unreachable is the result of a call that got no response. The error is not quoted: it may
// contain the address with a key.
func unreachable(result probeResult, err error) *probeResult {
	var f *fault.Fault
	if errors.As(err, &f) {
		return result.failed(causeNetwork, "%s", f.Message)
	}
	return result.failed(causeNetwork, "The host %s", egress.NoResponse(err))
}

// readProbe reads the response.
func readProbe(result probeResult, name string, resp *http.Response) *probeResult {
	result.Status = &resp.StatusCode
	switch s := resp.StatusCode; {
	case s == http.StatusUnauthorized || s == http.StatusForbidden:
		return result.failed(causeCredentials, "%s rejects the credentials with %d; save a valid key", name, s)
	case s == http.StatusTooManyRequests:
		return result.failed(causeProvider, "%s limits the rate of requests (429); repeat the test later", name)
	case s >= http.StatusInternalServerError:
		return result.failed(causeProvider, "%s answers with %d; repeat the test later", name, s)
	case s != http.StatusOK:
		return result.failed(causeSettings, "%s answers the list of models with %d; check custom_host and the other configurations", name, s)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, probeSize))
	var list struct{ Data, Models []json.RawMessage }
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		return result.failed(causeSettings, "The host does not respond with a list of models; check custom_host")
	}
	n := len(list.Data) + len(list.Models)
	result.Success, result.Models = true, &n
	return &result
}

// modelsURL returns the address of the list of models; "" if there is none. Hosts of OpenAI's
// format have it beside their chat completions.
func modelsURL(t *provider.Target) (string, error) {
	if t.Provider.Serves(provider.ModelsList) {
		return t.URL(provider.ModelsList, "", false)
	}
	if t.Provider.Dialect != provider.OpenAIChat || !t.Provider.Serves(provider.Chat) || t.Provider.Auth.Scheme != provider.HeaderAuth {
		return "", nil
	}
	chat, err := t.URL(provider.Chat, "", false)
	base, ok := strings.CutSuffix(chat, "/chat/completions")
	if err != nil || !ok {
		return "", err
	}
	return base + "/models", nil
}
