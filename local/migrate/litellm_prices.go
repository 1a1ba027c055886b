package migrate

import (
	"encoding/json"
	"maps"
	"math/big"
	"os"
	"strings"

	"gateway/local/declare"
	"gateway/local/document"
)

// tokenPrices are the prices of model_info in US dollars per unit, and the names that they
// have here, in US cents.
var tokenPrices = map[string]string{
	"input_cost_per_token": "request_token", "output_cost_per_token": "response_token", "cache_read_input_token_cost": "cache_read_input_token", "cache_creation_input_token_cost": "cache_write_input_token",
	"input_cost_per_audio_token": "request_audio_token", "output_cost_per_audio_token": "response_audio_token", "output_cost_per_reasoning_token": "reasoning_token", "input_cost_per_image_token": "request_image_token", "output_cost_per_image_token": "response_image_token",
}

// unitPrices are the prices per image or second, in US dollars, and the unit that they are of here
// by the model's mode; a mode that is missing has no such unit.
var unitPrices = map[string]map[string]string{
	"input_cost_per_image":             {"": "input_image", "chat": "input_image", "completion": "input_image", "responses": "input_image", "image_generation": "generated_images"},
	"output_cost_per_image":            {"": "generated_images", "chat": "generated_images", "image_generation": "generated_images", "image_edit": "generated_images"},
	"input_cost_per_second":            {"audio_transcription": "video_seconds"}, // seconds of audio or video
	"output_cost_per_second":           {"audio_transcription": "video_seconds", "video_generation": "video_seconds"},
	"output_cost_per_video_per_second": {"": "video_seconds", "video_generation": "video_seconds"},
}

// infoNotes are fields of model_info that change nothing here.
var infoNotes = map[string]mark{
	"mode":        {Mapped, "the path of a request says what it is"},
	"id":          {NotMapped, "targets are named by their place in the config"},
	"db_model":    {NotMapped, "describes the source's store"},
	"description": {NotMapped, "models have no description"},
	"max_tokens":  {Changed, "the price list has the limits of models"}, "max_input_tokens": {Changed, "the price list has the limits of models"}, "max_output_tokens": {Changed, "the price list has the limits of models"}, "output_vector_size": {Changed, "the provider decides"},
	"access_groups": {NotMapped, "give keys a config, or restrict models with model_settings of the workspace"}, "team_id": {NotMapped, "workspaces separate teams"}, "tier": {NotMapped, "write a condition on metadata"}, "health_check_model": {NotMapped, "circuit breakers watch real requests"}, "health_check_timeout": {NotMapped, "circuit breakers watch real requests"},
	"litellm_provider": {Mapped, "provider of the integration"}, "version": {NotMapped, "models have no version besides their name"}, "disable_background_health_check": {NotMapped, "circuit breakers watch real requests"},
}

// readInfo maps model_info, and the prices that may also be in litellm_params.
func readInfo(l *importer, d *deployment, info, params *document.Node) error {
	prices, units := map[string]any{}, map[string]any{}
	base, mode := "", info.Get("mode").Scalar()
	for _, n := range []*document.Node{params, info} {
		for _, f := range n.Fields() {
			v := f.Value
			if to, ok := tokenPrices[f.Name]; ok && v.Kind() != document.Null {
				cents, ok := centsOf(v.Scalar())
				if !ok {
					return document.Errorf(v.At, f.Name, "must be a price in US dollars")
				}
				prices[to] = map[string]any{"price": json.Number(cents)}
				l.mapped(v, "price of the model, in US cents")
				continue
			}
			if modes, ok := unitPrices[f.Name]; ok && v.Kind() != document.Null {
				unit, ok := modes[mode]
				if !ok {
					l.not(v, "requests of this mode are not priced by this unit")
					continue
				}
				cents, ok := centsOf(v.Scalar())
				if !ok {
					return document.Errorf(v.At, f.Name, "must be a price in US dollars")
				}
				if before, twice := units[unit]; twice && before.(map[string]any)["price"] != json.Number(cents) {
					l.not(v, "another price of the model is of the same unit")
					continue
				}
				units[unit] = map[string]any{"price": json.Number(cents)}
				l.mapped(v, "price of the model, in US cents")
				continue
			}
			switch {
			case f.Name == "base_model":
				base = v.Scalar()
				l.mapped(v, "base_model_slug of the integration's model")
			case n == params:
			case strings.HasPrefix(f.Name, "supports_"):
				l.changed(v, "requests are sent with what they have; the provider decides")
			case strings.Contains(f.Name, "_cost"):
				l.not(v, "prices of this unit are set in pricing_config by hand")
			default:
				m, ok := infoNotes[f.Name]
				if !ok {
					m = mark{NotMapped, "is a note of the source; models have no free fields"}
				}
				l.set(v, m.status, m.note)
			}
		}
	}
	if len(units) > 0 {
		prices["additional_units"] = units
	}
	if len(prices) == 0 && base == "" || d.anyModel || strings.Contains(d.model, "*") {
		return nil
	}
	model := map[string]any{"slug": d.model, "enabled": true}
	if len(prices) > 0 {
		model["pricing_config"] = map[string]any{"type": "static", "pay_as_you_go": prices}
	}
	if _, name, ok := strings.Cut(base, "/"); ok {
		base = name
	}
	if base != "" {
		model["is_custom"], model["base_model_slug"] = true, declare.Escape(base)
	}
	for _, r := range l.space.Sections["integrations"] {
		if r.Fields["slug"] != d.integrate {
			continue
		}
		list, _ := r.Fields["models"].([]any)
		for _, m := range list {
			if m.(map[string]any)["slug"] == d.model {
				return nil // two entries of one model: the first one's price counts
			}
		}
		r.Fields["models"] = append(list, model)
	}
	return nil
}

// centsOf turns US dollars into US cents, exactly.
func centsOf(dollars string) (string, bool) {
	if len(dollars) > 40 {
		return "", false
	}
	r, ok := new(big.Rat).SetString(strings.TrimSpace(dollars))
	if !ok || strings.Contains(dollars, "/") || r.Sign() < 0 {
		return "", false
	}
	text := strings.TrimRight(r.Mul(r, big.NewRat(100, 1)).FloatString(20), "0")
	return strings.TrimSuffix(text, "."), true
}

// budgets are the budgets that a LiteLLM proxy sets for everybody: the field with the amount in
// dollars, the field with its period, and the key that our policy counts by.
var budgets = []struct{ amount, period, by string }{
	{"max_budget", "budget_duration", "workspace_id"},
	{"max_end_user_budget", "budget_duration", "metadata._user"},
	{"max_user_budget", "budget_duration", "metadata._user"},
	{"max_internal_user_budget", "internal_user_budget_duration", "metadata._user"},
	{"default_max_internal_user_budget", "internal_user_budget_duration", "metadata._user"},
}

// readBudget maps a budget to a usage limit policy of the workspace. It reports whether the field
// is one of a budget.
func readBudget(l *importer, section *document.Node, at string, f document.Field) (bool, error) {
	for _, b := range budgets {
		switch f.Name {
		case b.period:
			return true, readPeriod(l, section, f)
		case b.amount:
			amount, ok := f.Value.Float()
			if !ok || amount < 0 {
				return true, document.Errorf(f.Value.At, at+"."+f.Name, "must be a number of at least 0")
			}
			if amount == 0 {
				l.not(f.Value, "a budget of 0 rejects everything; set allowed_models or scopes of keys")
				return true, nil
			}
			addBudget(l, "Imported "+at+"."+f.Name, b.by, amount, section.Get(b.period))
			if b.by == "workspace_id" {
				l.mapped(f.Value, "usage limit policy of the workspace")
			} else {
				l.changed(f.Value, "usage limit policy for each value of the metadata field _user, which is what a request sends as user")
			}
			return true, nil
		}
	}
	return false, nil
}

// readPeriod marks the period of a budget, which addBudget uses.
func readPeriod(l *importer, section *document.Node, f document.Field) error {
	used := false
	for _, b := range budgets {
		used = used || b.period == f.Name && section.Get(b.amount).Kind() != document.Null
	}
	if !used {
		l.not(f.Value, "there is no budget that it resets")
		return nil
	}
	l.mapped(f.Value, "reset of the policy")
	if _, note := duration(f.Value.Scalar()); note != "" {
		l.changed(f.Value, note)
	}
	return nil
}

func addBudget(l *importer, name, by string, amount float64, period *document.Node) {
	policy := map[string]any{
		"name": name, "type": "cost", "credit_limit": amount,
		"conditions": []any{map[string]any{"key": by, "value": "*"}}, "group_by": []any{map[string]any{"key": by}},
	}
	if period.Kind() != document.Null {
		reset, _ := duration(period.Scalar())
		maps.Copy(policy, reset)
	}
	l.add("usage_limit_policies", policy)
}

// jsonText is a value of the source as JSON.
func jsonText(n *document.Node) string {
	raw, err := json.Marshal(n.Value())
	if err != nil {
		return ""
	}
	return string(raw)
}

// maxCredentialFile bounds the file of a service account.
const maxCredentialFile = 64 << 10

// fileText returns the content of the file that a credential names, or the credential itself
// if it is no file.
func fileText(l *importer, text string) string {
	name := text
	if variable, ok := strings.CutPrefix(text, environPrefix); ok {
		value, set := l.env(variable)
		if !set {
			return text
		}
		name = value
	}
	if strings.HasPrefix(strings.TrimSpace(name), "{") {
		return text
	}
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxCredentialFile {
		return text
	}
	raw, err := os.ReadFile(name)
	if err != nil || !json.Valid(raw) {
		return text
	}
	return string(raw)
}
