package organisation

import (
	"encoding/json"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/identity/jwt"
	"gateway/shared/pricing"
	"gateway/shared/tenant"
)

// sections are the settings as bodies and answers have them.
func sections() []admin.Field {
	return []admin.Field{
		{Name: "security_settings", Doc: "What the roles of a workspace may do and see. Admins are bound by the last two only.", Fields: rights()},
		{Name: "data_plane_security_settings", Doc: "What requests may bring with them.", Fields: []admin.Field{
			{Name: "block_inline_config", Absent: false, Default: true, Doc: "Refuse inline configs, bare provider names, custom hosts, provider URLs and forwarded headers of requests."},
		}},
		{Name: "model_settings", Doc: "What requests may call.", Fields: []admin.Field{
			{Name: "allowed_models", Absent: []any{}, Of: &admin.Field{Check: pattern}, Doc: "Models that may be called, whatever providers offer: model or provider/model, where a * at the end stands for anything; empty or null: every model."},
		}},
		{Name: "request_logging", Doc: "What is kept of requests.", Fields: []admin.Field{
			{Name: "mode", In: "request_logging", Absent: tenant.LogFull, Doc: "full keeps bodies; metrics keeps none."},
			{Name: "enforce_debug", Doc: "Takes the place of the header x-gateway-debug of every request; null leaves it to requests."},
			{Name: "retention_days", In: "log_retention_days", Doc: "Days that logs, their bodies and what analytics count of them are kept, by whole days of UTC; what is older is shown no more at once, and deleted within hours. null: as long as the installation keeps them, which is the most."},
		}},
		{Name: "export_settings", Doc: "What may leave with exports of logs.", Fields: []admin.Field{
			{Name: "deniedFields", In: "denied_export_fields", Absent: []any{}, Of: &admin.Field{Enum: tenant.ExportFields}, Doc: "Fields that no export has."},
		}},
		{Name: "user_api_key_settings", Doc: "Rules of the keys of users.", Fields: []admin.Field{
			{Name: "user_api_key_auto_create", Absent: false}, {Name: "default_workspace_user_api_key_auto_create", Absent: false},
			{Name: "user_api_key_ttl"}, {Name: "user_api_key_max_ttl"}, {Name: "max_user_api_keys"},
			{Name: "user_api_key_rotation_period", Form: admin.Schema{"type": []string{"integer", "string", "null"}, "minimum": 1, "maximum": 365, "pattern": "^(weekly|monthly)$"}},
		}},
		{Name: "cache_settings", Doc: "How answers are used again.", Fields: []admin.Field{
			{Name: "max_age", In: "cache_max_age", Doc: "Seconds that an answer is used where a config does not say, and the most where it does; null: 604800, and no bound but that of configs."},
		}},
		{Name: "session_settings", Doc: "How long people stay signed in.", Fields: []admin.Field{
			{Name: "max_session_ttl", Doc: "Seconds after which a session ends and its user has to sign in again; for JSON Web Tokens counted from their iat, which they then need. null: as long as the session itself says."},
			{Name: "max_idle_time", Doc: "Seconds after which a session ends that made no call; null: 7200."},
		}},
		{Name: "auth_settings", Doc: "Who may call besides holders of keys: those whose JSON Web Tokens are signed by an issuer of the organisation.", Fields: []admin.Field{
			{Name: "jwks_url", Doc: "Address of the issuer's key set; null: none.", Check: keysAddress},
			{Name: "jwks", Type: admin.Object, Open: true, Doc: "The issuer's key set in place of an address: public RSA keys for RS256; null: none.", Check: keySet},
		}},
		{Name: "scim_settings", Doc: "How users and groups of an identity provider are taken.", Fields: []admin.Field{
			{Name: "group_prefix", In: "scim_group_prefix", Absent: tenant.GroupPrefix, Doc: "What names of groups begin with that map themselves: prefix, workspace, separator, role."},
			{Name: "role_separator", In: "scim_role_separator", Absent: tenant.RoleSeparator, Doc: "What stands between workspace and role in such a name."},
			{Name: "group_based_user_provisioning", Absent: false, Doc: "Whether users whom the identity provider has stopped come back when they are put into a group."},
			{Name: "user_based_groups", In: "scim_user_groups", Absent: false, Doc: "Whether groups of users are written with the users; members of groups are then only read."},
			{Name: "scim_only", In: "scim_only_users", Absent: false, Doc: "Whether users come, go and get their roles in the organisation by the identity provider alone."},
		}},
		{Name: "metadata_schemas", Doc: "Which metadata new keys and workspaces must have: JSON schemas (draft 07) of objects of texts.", Fields: []admin.Field{
			{Name: "api_key", In: "key_metadata", Doc: "Of API keys, also when their metadata is changed.", Check: tenant.CheckMetadataSchema},
			{Name: "workspace", In: "workspace_metadata", Doc: "Of workspaces, also when their metadata is changed.", Check: tenant.CheckMetadataSchema},
		}},
		{Name: "budget_settings", Example: map[string]any{"unpriced": "refuse"}, Doc: "What holds for every budget.", Fields: []admin.Field{
			{Name: "unpriced", Absent: tenant.UnpricedRefuse, Doc: "Whether models without a price may be called while a cost budget is in force."},
			{Name: "unbounded", Absent: tenant.UnboundedRefuse, Doc: "Whether requests may be made, while a budget is in force, whose cost has no bound: their input is stored at a provider or fetched by it and the model's context window is unknown, or they are batches whose rows cannot be read."},
		}},
		{Name: "pricing_settings", Doc: "What models cost the organisation, where that is not what the list says. An integration's own prices and multipliers come first.", Fields: []admin.Field{
			{Name: "models", In: "model_prices", Type: admin.Object, Open: true, Doc: "Prices in place of the list's, by provider/model, each as pricing_config of an integration's model: US cents per unit; null: none. Beside pay_as_you_go, from and until (a day or a time), days, hours (UTC) and above_tokens limit a price; a list has several. While none applies, the list's price does.", Check: ownPrices},
			{Name: "multiplier", In: "price_multiplier", Type: admin.Object, Open: true, Doc: "Multipliers on prices, as pricing_adjustments.multiplier of integrations, for those that have none; null: none.", Check: multipliers},
		}},
		{Name: "api_settings", Doc: "How the administration API reads requests.", Fields: []admin.Field{
			{Name: "lenient", Absent: false, Default: false, Doc: "Whether unknown fields and query parameters are ignored instead of rejected with status 400, as the header x-gateway-lenient does for one request."},
		}},
		{Name: "workspace_overrides", Doc: "Which settings workspaces may have of their own. One that is switched off gives every workspace the organisation's again.", Fields: categories()},
	}
}

func rights() []admin.Field {
	var out []admin.Field
	for _, r := range tenant.AllRights() {
		out = append(out, admin.Field{Name: r.Name, Absent: r.Standard, Default: r.Standard})
	}
	return out
}

func categories() []admin.Field {
	var out []admin.Field
	for _, c := range tenant.Categories() {
		out = append(out, admin.Field{Name: c, In: tenant.OpenPrefix + c, Absent: false, Default: false})
	}
	return out
}

// pattern checks an entry of the allowed models.
func pattern(raw json.RawMessage) []fault.Detail {
	var entry string
	if json.Unmarshal(raw, &entry) != nil {
		return nil // its type is checked elsewhere
	}
	of, model, two := strings.Cut(entry, "/")
	if strings.Contains(strings.TrimSuffix(entry, "*"), "*") || two && (of == "" || model == "") || strings.HasPrefix(entry, "@") || strings.TrimSpace(entry) != entry {
		return []fault.Detail{{Message: "must be a model or provider/model, with a * at its end or none"}}
	}
	return nil
}

// ownPrices checks prices of models.
func ownPrices(raw json.RawMessage) []fault.Detail {
	_, bad := pricing.ParseModelPrices(raw)
	return bad
}

// multipliers checks multipliers on prices.
func multipliers(raw json.RawMessage) []fault.Detail {
	_, bad := pricing.ParseMultiplier(raw)
	return bad
}

// keySet checks a key set that is given in place.
func keySet(raw json.RawMessage) []fault.Detail { return problem(jwt.CheckSet(raw)) }

// keysAddress checks the address of a key set. Where it leads is for the dialer to
// refuse, each time.
func keysAddress(raw json.RawMessage) []fault.Detail {
	var address string
	if json.Unmarshal(raw, &address) != nil {
		return nil // its type is checked elsewhere
	}
	return problem(jwt.CheckURL(address))
}

func problem(err error) []fault.Detail {
	if err == nil {
		return nil
	}
	return []fault.Detail{{Message: err.Error()}}
}
