package organisation

import (
	"reflect"
	"strings"
	"testing"

	"gateway/shared/testkit/admintest"
)

// null sets each setting back to what holds where nothing was ever set, and so
// does null for its section.
func TestNullSetsTheStandardOfEachSetting(t *testing.T) {
	t.Parallel()
	standard := admintest.New(t, New()).Do("GET", path, key, nil).OK()
	other := map[string]string{
		"data_plane_security_settings.block_inline_config": "false", "request_logging.mode": `"metrics"`, "request_logging.enforce_debug": "true",
		"cache_settings.max_age": "60", "budget_settings.unpriced": `"allow"`, "session_settings.max_session_ttl": "900",
		"model_settings.allowed_models": `["m","openai/gpt-*"]`, "export_settings.deniedFields": `["request"]`,
		"user_api_key_settings.user_api_key_auto_create": "true", "user_api_key_settings.user_api_key_rotation_period": `"weekly"`, "user_api_key_settings.max_user_api_keys": "3",
		"security_settings.membersViewAllData": "false", "security_settings.membersWritePrompts": "true", "security_settings.organisationAdminsViewLogs": "false",
		"metadata_schemas.api_key": `{"type":"object","required":["team"]}`, "metadata_schemas.workspace": `{"type":"object"}`,
		"workspace_overrides.data_visibility": "true", "workspace_overrides.request_logging": "true",
	}
	h := admintest.New(t, New())
	for name, value := range other {
		section, member, _ := strings.Cut(name, ".")
		for _, null := range []string{`{"` + section + `":{"` + member + `":null}}`, `{"` + section + `":null}`} {
			h.Do("PUT", path, key, `{"`+section+`":{"`+member+`":`+value+`}}`).OK()
			if got := h.Do("GET", path, key, nil).OK().At(section, member); reflect.DeepEqual(got, standard.At(section, member)) {
				t.Fatalf("%s: was not set: %v", name, got)
			}
			h.Do("PUT", path, key, null).OK()
			if got := h.Do("GET", path, key, nil).OK().At(section, member); !reflect.DeepEqual(got, standard.At(section, member)) {
				t.Errorf("%s: %s gives %v, want %v", name, null, got, standard.At(section, member))
			}
		}
	}
}
