package organisation

import (
	"encoding/json"
	"flag"
	"strings"
	"testing"

	"gateway/shared/resource"
	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
)

var updateGolden = flag.Bool("update", false, "rewrite the golden files")

const key = admintest.AdminKey

func TestFamilyChecks(t *testing.T) {
	h := admintest.New(t, New())
	admintest.CheckFamily(t, h)
	admintest.BadBodies(t, h, "PUT", path, key, `{"cache_settings":{"max_age":60}}`)
}

func TestAnswers(t *testing.T) {
	h := admintest.New(t, New())
	h.Golden(*updateGolden, "settings.txt",
		admintest.As(key, "GET", path, ""),
		admintest.As(key, "PUT", path, `{"data_plane_security_settings":{"block_inline_config":false},"request_logging":{"mode":"metrics","enforce_debug":false},"cache_settings":{"max_age":3600},"budget_settings":{"unpriced":"allow"}}`),
		admintest.As(key, "GET", path, ""),
		admintest.As(key, "PUT", path, `{"cache_settings":{"max_age":null},"request_logging":null}`),
		admintest.As(key, "GET", path, ""),
	)
}

// stored reads the settings as requests do.
func stored(t *testing.T, h *admintest.Installation, who string) tenant.Settings {
	t.Helper()
	sc := h.Caller(who).Scope
	rec, ok, err := h.Resources.Get(t.Context(), sc, tenant.KindOrganisation, sc.Org)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	org, err := tenant.DecodeOrganisation(rec)
	if err != nil {
		t.Fatal(err)
	}
	return org.Settings
}

func TestUpdateRetainsUnnamedFields(t *testing.T) {
	h := admintest.New(t, New())
	put := func(body string) { h.Do("PUT", path, key, body).OK() }
	put(`{"cache_settings":{"max_age":60},"request_logging":{"mode":"metrics","enforce_debug":true}}`)
	put(`{"request_logging":{"mode":"full"},"budget_settings":{}}`)
	got := stored(t, h, key)
	if got.CacheMaxAge != 60 || got.RequestLogging != tenant.LogFull || got.EnforceDebug == nil || !*got.EnforceDebug || !got.BlockInlineConfig || got.Unpriced != "" {
		t.Errorf("%+v", got)
	}
	put(`{"data_plane_security_settings":{"block_inline_config":false}}`)
	if stored(t, h, key).BlockInlineConfig {
		t.Error("inline configs are still refused")
	}
	put(`{"data_plane_security_settings":null,"request_logging":{"enforce_debug":null}}`)
	if got := stored(t, h, key); !got.BlockInlineConfig || got.EnforceDebug != nil || got.CacheMaxAge != 60 {
		t.Errorf("%+v", got)
	}
}

func TestBadSettingsAreNamedAllAtOnce(t *testing.T) {
	h := admintest.New(t, New())
	for body, field := range map[string]string{
		`{}`: "", `{"unknown":{}}`: "",
		`{"cache_settings":[]}`: "cache_settings", `{"cache_settings":7}`: "cache_settings",
		`{"cache_settings":{"max_age":59}}`:                          "cache_settings.max_age",
		`{"cache_settings":{"max_age":0}}`:                           "cache_settings.max_age",
		`{"cache_settings":{"max_age":-60}}`:                         "cache_settings.max_age",
		`{"cache_settings":{"max_age":25923001}}`:                    "cache_settings.max_age",
		`{"cache_settings":{"max_age":1e400}}`:                       "cache_settings.max_age",
		`{"cache_settings":{"max_age":60.5}}`:                        "cache_settings.max_age",
		`{"cache_settings":{"max_age":"60"}}`:                        "cache_settings.max_age",
		`{"cache_settings":{"ttl":60}}`:                              "cache_settings.ttl",
		`{"request_logging":{"mode":"none"}}`:                        "request_logging.mode",
		`{"request_logging":"full"}`:                                 "request_logging",
		`{"request_logging":{"retention_days":0}}`:                   "request_logging.retention_days",
		`{"request_logging":{"retention_days":-1}}`:                  "request_logging.retention_days",
		`{"request_logging":{"retention_days":1.5}}`:                 "request_logging.retention_days",
		`{"request_logging":{"retention_days":36501}}`:               "request_logging.retention_days",
		`{"request_logging":{"retention_days":"30"}}`:                "request_logging.retention_days",
		`{"request_logging":{"enforce_debug":"true"}}`:               "request_logging.enforce_debug",
		`{"budget_settings":{"unpriced":true}}`:                      "budget_settings.unpriced",
		`{"data_plane_security_settings":{"block_inline_config":1}}`: "data_plane_security_settings.block_inline_config",

		`{"session_settings":{"max_session_ttl":899}}`:                                                                         "session_settings.max_session_ttl",
		`{"security_settings":{"membersViewAllData":"no"}}`:                                                                    "security_settings.membersViewAllData",
		`{"security_settings":{"ownersViewAllData":false}}`:                                                                    "security_settings.ownersViewAllData",
		`{"model_settings":{"allowed_models":["m",""]}}`:                                                                       "model_settings.allowed_models[1]",
		`{"model_settings":{"allowed_models":["a*b"]}}`:                                                                        "model_settings.allowed_models[0]",
		`{"model_settings":{"allowed_models":["/m"]}}`:                                                                         "model_settings.allowed_models[0]",
		`{"model_settings":{"allowed_models":["@saved/m"]}}`:                                                                   "model_settings.allowed_models[0]",
		`{"model_settings":{"allowed_models":"m"}}`:                                                                            "model_settings.allowed_models",
		`{"export_settings":{"deniedFields":["secrets"]}}`:                                                                     "export_settings.deniedFields[0]",
		`{"user_api_key_settings":{"user_api_key_rotation_period":0}}`:                                                         "user_api_key_settings.user_api_key_rotation_period",
		`{"user_api_key_settings":{"user_api_key_rotation_period":366}}`:                                                       "user_api_key_settings.user_api_key_rotation_period",
		`{"user_api_key_settings":{"user_api_key_rotation_period":"daily"}}`:                                                   "user_api_key_settings.user_api_key_rotation_period",
		`{"user_api_key_settings":{"user_api_key_ttl":120,"user_api_key_max_ttl":60}}`:                                         "user_api_key_settings.user_api_key_ttl",
		`{"user_api_key_settings":{"max_user_api_keys":0}}`:                                                                    "user_api_key_settings.max_user_api_keys",
		`{"user_api_key_settings":{"user_api_key_auto_create":1}}`:                                                             "user_api_key_settings.user_api_key_auto_create",
		`{"metadata_schemas":{"api_key":{"type":"array"}}}`:                                                                    "metadata_schemas.api_key.type",
		`{"metadata_schemas":{"api_key":{"type":"object","additionalProperties":false}}}`:                                      "metadata_schemas.api_key.additionalProperties",
		`{"metadata_schemas":{"workspace":{"type":"object","properties":{"a":{"type":7}}}}}`:                                   "metadata_schemas.workspace.properties.a.type",
		`{"metadata_schemas":{"workspace":{"type":"object","properties":{"a":{"type":"string","pattern":"("}}}}}`:              "metadata_schemas.workspace.properties.a.pattern",
		`{"metadata_schemas":{"workspace":{"type":"object","properties":{"a":{"type":"string","enum":["x"],"default":"y"}}}}}`: "metadata_schemas.workspace.properties.a.default",
		`{"metadata_schemas":{"workspace":{"type":"object","patternProperties":{}}}}`:                                          "metadata_schemas.workspace.patternProperties",
		`{"workspace_overrides":{"everything":true}}`:                                                                          "workspace_overrides.everything",
		`{"workspace_overrides":{"models":true}}`:                                                                              "workspace_overrides.models",
		`{"auth_settings":{"jwks_url":"ftp://x"}}`:                                                                             "auth_settings.jwks_url",
		`{"auth_settings":{"jwks":{"keys":[]}}}`:                                                                               "auth_settings.jwks",
	} {
		h.Do("PUT", path, key, body).RequireFault(400, "AB01", field)
	}
	got := h.Do("PUT", path, key, `{"cache_settings":{"max_age":1},"request_logging":{"mode":"x"}}`).Failure()
	if len(got.Fields) != 2 {
		t.Errorf("errors: %v", got.Fields)
	}
	if got := h.Do("GET", path, key, nil).OK(); got.At("cache_settings", "max_age") != nil || got.At("last_updated_at") != nil {
		t.Errorf("a refused change was kept: %s", got.Body)
	}
	for _, ends := range []string{"60", "25923000"} {
		h.Do("PUT", path, key, `{"cache_settings":{"max_age":`+ends+`}}`).OK()
	}
}

func TestOnlyTheOrganisationReachesItsSettings(t *testing.T) {
	h := admintest.New(t, New())
	const body = `{"cache_settings":{"max_age":60}}`
	for _, k := range []string{admintest.WorkspaceA, admintest.MemberKey, admintest.ManagerKey, admintest.WsAdminKey, admintest.NoScopesKey} {
		h.Do("GET", path, k, nil).RequireFault(403, "AB03", "")
		h.Do("PUT", path, k, body).RequireFault(403, "AB03", "")
	}
	reader := h.Caller(key)
	reader.Scopes = admintest.ScopeList{"organisation_settings.read"}
	h.SetCaller("key-reader", reader)
	h.Do("GET", path, "key-reader", nil).OK()
	h.Do("PUT", path, "key-reader", body).RequireFault(403, "AB03", "")

	h.Do("PUT", path, key, body).OK()
	if got := h.Do("GET", path, admintest.OtherAdmin, nil).OK(); got.At("cache_settings", "max_age") != nil || got.Text("organisation_id") != admintest.OtherOrg {
		t.Errorf("another organization reads %s", got.Body)
	}
	for _, named := range []string{admintest.Org, resource.NewID()} {
		h.Do("GET", path+"?organisation_id="+named, admintest.OtherAdmin, nil).RequireFault(403, "AB03", "")
		h.Do("PUT", path, admintest.OtherAdmin, `{"organisation_id":"`+named+`","cache_settings":{"max_age":90}}`).RequireFault(403, "AB03", "")
	}
	h.Do("PUT", path, admintest.OtherAdmin, `{"cache_settings":{"max_age":90}}`).OK()
	if got := stored(t, h, key).CacheMaxAge; got != 60 {
		t.Errorf("another organization set it to %d", got)
	}
}

func TestAChangeIsInTheAuditLog(t *testing.T) {
	h := admintest.New(t, New())
	h.Do("PUT", path, key, `{"cache_settings":{"max_age":600}}`).OK()
	h.Do("PUT", path, key, `{"cache_settings":{"max_age":1}}`).RequireFault(400, "AB01", "")
	log := h.Audit()
	if len(log) != 2 || log[0].StatusCode != 200 || log[1].StatusCode != 400 {
		t.Fatalf("%d entries: %+v", len(log), log)
	}
	if e := log[0]; e.ResourceType != "organisation_settings" || e.Action != "update" || e.ResourceID != admintest.Org || !strings.Contains(e.RequestBody, "600") {
		t.Errorf("%+v", e)
	}
}

// Other parts of the organization's record are unchanged.
func TestAStoredOrganisationIsChangedInPlace(t *testing.T) {
	h := admintest.New(t, New())
	body, err := json.Marshal(tenant.Organisation{Settings: tenant.Settings{Unpriced: tenant.UnpricedAllow}})
	if err != nil {
		t.Fatal(err)
	}
	rec := resource.Record{Scope: h.Caller(key).Scope, Kind: tenant.KindOrganisation, ID: admintest.Org, Name: "Acme", Status: tenant.StatusActive, Body: body}
	if err := h.Resources.Change(t.Context(), rec.Scope, func(tx *resource.Tx) error { return tx.Create(&rec) }); err != nil {
		t.Fatal(err)
	}
	h.Do("PUT", path, key, `{"cache_settings":{"max_age":600}}`).OK()
	if got := stored(t, h, key); got.Unpriced != tenant.UnpricedAllow || got.CacheMaxAge != 600 || got.BlockInlineConfig {
		t.Errorf("%+v", got)
	}
	now, _, err := h.Resources.Get(t.Context(), rec.Scope, tenant.KindOrganisation, admintest.Org)
	if err != nil || now.Name != "Acme" || now.Rev != 2 {
		t.Errorf("%+v %v", now, err)
	}
}
