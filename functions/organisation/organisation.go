// Package organisation is the family of what an organisation sets for all of its
// workspaces.
package organisation

import (
	"encoding/json"
	"slices"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/identity/jwt"
	"gateway/shared/tenant"
)

const path = "/admin/organisation/settings"

// New makes the family.
func New() admin.Family {
	settings := &admin.Singleton[tenant.Settings]{
		Object: "organisation-settings", Path: path, Kind: tenant.KindOrganisation, In: "settings",
		Scope: "organisation_settings", Role: admin.Admin, Title: "settings of the organisation",
		Standard: tenant.Settings{BlockInlineConfig: true},
		Sections: []admin.Field{
			{Name: "data_plane_security_settings", Doc: "What requests may bring with them.", Fields: []admin.Field{
				{Name: "block_inline_config", Absent: false, Default: true, Doc: "Refuse inline configs, bare provider names, custom hosts, provider URLs and forwarded headers of requests."},
			}},
			{Name: "request_logging", Doc: "What is kept of requests.", Fields: []admin.Field{
				{Name: "mode", In: "request_logging", Absent: tenant.LogFull, Doc: "full keeps bodies; metrics keeps none."},
				{Name: "enforce_debug", Doc: "Takes the place of the header x-gateway-debug of every request; null leaves it to requests."},
			}},
			{Name: "cache_settings", Doc: "How answers are used again.", Fields: []admin.Field{
				{Name: "max_age", In: "cache_max_age", Doc: "Seconds that an answer is used where a config does not say, and the most where it does; null: 604800, and no bound but that of configs."},
			}},
			{Name: "auth_settings", Doc: "Who may call besides holders of keys: those whose JSON Web Tokens are signed by an issuer of the organisation.", Fields: []admin.Field{
				{Name: "jwks_url", Doc: "Address of the issuer's key set; null: none.", Check: keysAddress},
				{Name: "jwks", Type: admin.Object, Open: true, Doc: "The issuer's key set in place of an address: public RSA keys for RS256; null: none.", Check: keySet},
			}},
			{Name: "budget_settings", Doc: "What holds for every budget.", Fields: []admin.Field{
				{Name: "unpriced", Absent: tenant.UnpricedRefuse, Doc: "Whether models without a price may be called while a cost budget is in force."},
			}},
		},
	}
	return admin.Family{Name: "organisation", Doc: "Settings of the organisation that requests of every workspace go by.", Routes: slices.Concat(settings.Routes(), defaultRoutes(), exclusionRoutes())}
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
