package guard

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"gateway/shared/fault"
)

// languages are the code formats that are recognized.
var languages = []string{"SQL", "Python", "TypeScript", "JavaScript", "Java", "C#", "C++", "C", "Ruby", "PHP", "Swift", "Kotlin", "Go", "Rust", "Scala", "R", "Perl", "Shell", "HTML", "CSS", "XML", "JSON", "YAML", "Markdown", "Dockerfile"}

// RequestTypes are the request types that checks and policies name.
var RequestTypes = []string{
	"complete", "chatComplete", "embed", "rerank", "moderate", "proxy", "imageGenerate", "createSpeech", "createTranscription", "createTranslation", "realtime", "mcp", "agent",
	"uploadFile", "listFiles", "retrieveFile", "deleteFile", "retrieveFileContent", "createBatch", "retrieveBatch", "cancelBatch", "listBatches", "getBatchOutput",
	"listFinetunes", "createFinetune", "retrieveFinetune", "cancelFinetune", "createModelResponse", "getModelResponse", "deleteModelResponse", "listResponseInputItems", "messages", "otel",
}

// matchTypes are the ways to compare values.
var matchTypes = []string{"exact", "contains", "containsAll", "regex"}

// countLimits returns the limits of a check that counts something.
func countLimits(least, most string, limit int64) []Param {
	return []Param{{Name: least, Type: Integer, Max: 1_000_000_000, Default: 0}, {Name: most, Type: Integer, Max: 1_000_000_000, Default: limit}, not}
}

// checkOrder rejects a lower limit above the upper one.
func checkOrder(least, most string) func(map[string]json.RawMessage) []fault.Detail {
	return func(params map[string]json.RawMessage) []fault.Detail {
		var a, b int64
		if params[least] == nil || params[most] == nil || json.Unmarshal(params[least], &a) != nil || json.Unmarshal(params[most], &b) != nil || a <= b {
			return nil
		}
		return []fault.Detail{{Field: least, Message: "must not be more than " + most}}
	}
}

// basicChecks judge only texts.
var basicChecks = []*Check{
	{ID: "default.regexMatch", Phase: Both, Category: Basic, Params: []Param{{Name: "rule", Type: Pattern, Required: true}, not}, Doc: "The text matches a pattern."},
	{ID: "default.regexReplace", Phase: Both, Category: Basic, Mutates: true, Doc: "Replaces matches of a pattern.",
		Params: []Param{{Name: "rule", Type: Replaced, Required: true}, {Name: "redactText", Type: Text, Default: "[REDACTED]"}, {Name: "failOnDetection", Type: Flag, Default: false}}},
	{ID: "default.sentenceCount", Phase: Both, Category: Basic, Params: countLimits("minSentences", "maxSentences", 99_999), validate: checkOrder("minSentences", "maxSentences"), Doc: "The text has a number of sentences."},
	{ID: "default.wordCount", Phase: Both, Category: Basic, Params: countLimits("minWords", "maxWords", 99_999), validate: checkOrder("minWords", "maxWords"), Doc: "The text has a number of words."},
	{ID: "default.characterCount", Phase: Both, Category: Basic, Params: countLimits("minCharacters", "maxCharacters", 9_999_999), validate: checkOrder("minCharacters", "maxCharacters"), Doc: "The text has a number of characters."},
	{ID: "default.jsonSchema", Phase: After, Category: Basic, Params: []Param{{Name: "schema", Type: Schema, Required: true}, not}, Doc: "The response contains JSON that matches a schema."},
	{ID: "default.jsonKeys", Phase: After, Category: Basic, Params: []Param{{Name: "keys", Type: Texts, Required: true, Min: 1}, anyOf}, Doc: "The response contains JSON with certain keys."},
	{ID: "default.contains", Phase: Both, Category: Basic, Params: []Param{{Name: "words", Type: Texts, Required: true, Min: 1}, anyOf}, Doc: "The text contains certain words."},
	{ID: "default.containsCode", Phase: After, Category: Basic, Params: []Param{{Name: "format", Type: Text, Required: true, Enum: languages}, not}, Doc: "The response contains code."},
	{ID: "default.alluppercase", Aliases: []string{"default.isAllUpperCase", "default.allUpperCase"}, Phase: Both, Category: Basic, Params: []Param{not}, Doc: "The text is uppercase."},
	{ID: "default.alllowercase", Aliases: []string{"default.isAllLowerCase", "default.allLowerCase"}, Phase: Both, Category: Basic, Params: []Param{not}, Doc: "The text is lowercase."},
	{ID: "default.endsWith", Phase: Both, Category: Basic, Params: []Param{{Name: "suffix", Type: Text, Required: true, Min: 1}, not}, Doc: "The text ends with a suffix."},
	{ID: "default.notNull", Phase: After, Category: Basic, Params: []Param{not}, Doc: "The response is not empty."},
	{ID: "default.addPrefix", Phase: Before, Category: Basic, Mutates: true, Doc: "Prepends a text to a message.", Params: []Param{
		{Name: "prefix", Type: Text, Required: true, Min: 1, Default: "Please respond helpfully and accurately to the following: "},
		{Name: "applyToRole", Type: Text, Enum: []string{"user", "system", "assistant"}, Default: "user"}, {Name: "addToExisting", Type: Flag, Default: true}, {Name: "onlyIfEmpty", Type: Flag, Default: false}}},
}

// requestChecks judge request properties other than text.
var requestChecks = []*Check{
	{ID: "default.modelwhitelist", Aliases: []string{"default.modelWhitelist"}, Phase: Before, Category: Basic, Params: []Param{{Name: "models", Type: Texts, Required: true, Min: 1}, not}, Doc: "The model is in a list."},
	{ID: "default.modelRules", Phase: Before, Category: Basic, Params: []Param{{Name: "rules", Type: Object, Required: true, Members: []Param{{Name: "defaults", Type: Texts}, {Name: "metadata", Type: Object}}}, not}, validate: modelRules, Doc: "The request's metadata allow the model."},
	{ID: "default.requiredMetadataKeys", Phase: Before, Category: Basic, Params: []Param{{Name: "metadataKeys", Type: Texts, Required: true, Min: 1}, allOf}, Doc: "The request has certain metadata keys."},
	{ID: "default.requiredMetadataKeyPairs", Phase: Before, Category: Basic, Doc: "The request has certain metadata key-value pairs.", validate: metadataPairs, Params: []Param{
		{Name: "metadataPairs", Type: Object, Required: true, Min: 1}, allOf, {Name: "matchType", Type: Text, Enum: matchTypes, Default: "exact"}}},
	{ID: "default.allowedRequestTypes", Phase: Before, Category: Basic, Doc: "The request type is allowed.", validate: checkDisjoint("allowedTypes", "blockedTypes"), Params: []Param{
		{Name: "allowedTypes", Type: Listed, Enum: RequestTypes}, {Name: "blockedTypes", Type: Listed, Enum: RequestTypes}}},
	{ID: "default.requestParametersCheck", Phase: Before, Category: Basic, Doc: "The request's tools and parameters are allowed.", validate: requestParameters, Params: []Param{
		{Name: "tools", Type: Object, Members: toolRules},
		{Name: "params", Type: Object, Members: []Param{{Name: "blockedKeys", Type: Texts}, {Name: "allowedKeys", Type: Texts}, {Name: "values", Type: Object}}}}},
	{ID: "default.blockedTools", Phase: Both, Category: Basic, Doc: "The request's tools are allowed. default.requestParametersCheck includes this check.", validate: blockedTools, Params: toolRules},
}

// secret is the key with which a customer's host verifies signatures.
var secret = Param{Name: "secret", Type: Text, Min: 16, Max: 1024}

// toolRules are lists of allowed and blocked tools.
var toolRules = []Param{{Name: "blockedTypes", Type: Texts}, {Name: "allowedTypes", Type: Texts}, {Name: "blockedFunctionNames", Type: Texts}, {Name: "allowedFunctionNames", Type: Texts}}

// blockedTools rejects contradictory lists of tools.
func blockedTools(params map[string]json.RawMessage) []fault.Detail {
	return append(checkDisjoint("allowedTypes", "blockedTypes")(params), checkDisjoint("allowedFunctionNames", "blockedFunctionNames")(params)...)
}

// remoteChecks call hosts of the customer.
var remoteChecks = []*Check{
	{ID: "default.jwt", Phase: Before, Category: Remote, Doc: "A header of the request has a valid token.", validate: jwt, Params: []Param{
		{Name: "jwksUri", Type: URL}, {Name: "jwks", Type: Object}, {Name: "introspectEndpoint", Type: URL}, {Name: "headerKey", Type: Text, Min: 1, Max: 255, Default: "Authorization"},
		{Name: "cacheMaxAge", Type: Integer, Max: 604_800, Default: 86_400}, {Name: "clockTolerance", Type: Integer, Max: 3600, Default: 5}, {Name: "maxTokenAge", Type: Text, Max: 32, Default: "1d"},
		{Name: "algorithms", Type: Texts, Enum: []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}, Default: []string{"RS256"}},
		{Name: "introspectContentType", Type: Text, Max: 255}, {Name: "introspectCacheMaxAge", Type: Integer, Max: 604_800}, {Name: "requiredClaims", Type: Texts}, {Name: "claimValues", Type: Object},
		{Name: "headerPayloadMatch", Type: Texts}, {Name: "extractClaims", Type: Texts}, {Name: "claimPrefix", Type: Text, Max: 64, Default: "x-jwt-"}}},
	{ID: "default.validUrls", Phase: After, Category: Remote, Params: []Param{{Name: "onlyDNS", Type: Flag, Default: false}, not}, Doc: "The links in the response are reachable."},
	{ID: "default.webhook", Phase: Both, Category: Remote, Params: []Param{{Name: "webhookURL", Type: URL, Required: true}, {Name: "headers", Type: Object}, secret}, Doc: "Calls a service of the customer for the verdict."},
	{ID: "default.log", Phase: Both, Category: Remote, Params: []Param{{Name: "logURL", Type: URL, Required: true}, {Name: "headers", Type: Object}, secret}, Doc: "Sends the request and the response to a service of the customer."},
	{ID: "default.inlineImageUrls", Phase: Before, Category: Remote, Mutates: true, Doc: "Fetches images and inlines them in the request.", Params: []Param{
		{Name: "providers", Type: Texts}, {Name: "maxSizeBytes", Type: Integer, Min: 1, Max: 20 << 20, Default: 20 << 20}, {Name: "timeoutMs", Type: Integer, Min: 1, Max: maxTimeout, Default: 30_000}}},
}

// checkDisjoint rejects an entry that is in both lists.
func checkDisjoint(allowed, blocked string) func(map[string]json.RawMessage) []fault.Detail {
	return func(params map[string]json.RawMessage) []fault.Detail {
		other := listOf(params[allowed])
		for _, e := range listOf(params[blocked]) {
			if slices.Contains(other, e) {
				return []fault.Detail{{Field: blocked, Message: "has an entry of " + allowed + " too"}}
			}
		}
		return nil
	}
}

func requestParameters(params map[string]json.RawMessage) []fault.Detail {
	var bad []fault.Detail
	for _, c := range []struct{ top, allowed, blocked string }{
		{"tools", "allowedTypes", "blockedTypes"}, {"tools", "allowedFunctionNames", "blockedFunctionNames"}, {"params", "allowedKeys", "blockedKeys"},
	} {
		for _, d := range checkDisjoint(c.allowed, c.blocked)(objectOf(params[c.top])) {
			bad = append(bad, fault.Detail{Field: c.top + "." + d.Field, Message: d.Message})
		}
	}
	for name, raw := range objectOf(objectOf(params["params"])["values"]) {
		rule := objectOf(raw)
		if rule == nil {
			bad = append(bad, fault.Detail{Field: "params.values." + clip(name), Message: "must be an object with blockedValues and allowedValues"})
		}
		for _, list := range []string{"blockedValues", "allowedValues"} {
			var values []any
			if v, ok := rule[list]; ok && json.Unmarshal(v, &values) != nil {
				bad = append(bad, fault.Detail{Field: "params.values." + clip(name) + "." + list, Message: "must be an array"})
			}
		}
	}
	return bad
}

// modelRules validates {"metadata":{key:{value:[models]}}}.
func modelRules(params map[string]json.RawMessage) []fault.Detail {
	var bad []fault.Detail
	for key, raw := range objectOf(objectOf(params["rules"])["metadata"]) {
		values := objectOf(raw)
		if values == nil {
			bad = append(bad, fault.Detail{Field: "rules.metadata." + clip(key), Message: "must be an object of lists of models by value"})
		}
		for value, raw := range values {
			var models []string
			if json.Unmarshal(raw, &models) != nil {
				bad = append(bad, fault.Detail{Field: "rules.metadata." + clip(key) + "." + clip(value), Message: "must be a list of models"})
			}
		}
	}
	return bad
}

// metadataPairs requires valid patterns where pairs are matched by pattern.
func metadataPairs(params map[string]json.RawMessage) []fault.Detail {
	var bad []fault.Detail
	if string(params["matchType"]) != `"regex"` {
		return nil
	}
	for key, raw := range objectOf(params["metadataPairs"]) {
		for _, text := range listOf(raw) {
			if _, err := CompilePattern(text); err != nil {
				bad = append(bad, fault.Detail{Field: "metadataPairs." + clip(key), Message: err.Error()})
			}
		}
	}
	return bad
}

// jwt requires one source of keys, a valid age, and comparable values.
func jwt(params map[string]json.RawMessage) []fault.Detail {
	var bad []fault.Detail
	if params["jwksUri"] == nil && params["jwks"] == nil && params["introspectEndpoint"] == nil {
		bad = append(bad, fault.Detail{Field: "jwksUri", Message: "is required unless jwks or introspectEndpoint is set"})
	}
	if set := params["jwks"]; set != nil {
		var keys []json.RawMessage
		if json.Unmarshal(objectOf(set)["keys"], &keys) != nil || len(keys) == 0 {
			bad = append(bad, fault.Detail{Field: "jwks.keys", Message: "must be a list of at least one key"})
		}
	}
	var age string
	if json.Unmarshal(params["maxTokenAge"], &age) == nil && params["maxTokenAge"] != nil {
		if _, err := ParseAge(age); err != nil {
			bad = append(bad, fault.Detail{Field: "maxTokenAge", Message: err.Error()})
		}
	}
	for name, raw := range objectOf(params["claimValues"]) {
		rule := objectOf(raw)
		at := "claimValues." + clip(name)
		var how string
		switch _ = json.Unmarshal(rule["matchType"], &how); {
		case rule["values"] == nil || string(rule["values"]) == "null":
			bad = append(bad, fault.Detail{Field: at, Message: "must be an object with values and matchType"})
		case how != "" && !slices.Contains(matchTypes, how):
			bad = append(bad, fault.Detail{Field: at + ".matchType", Message: "must be one of " + strings.Join(matchTypes, ", ")})
		case how == "regex":
			for _, text := range listOf(rule["values"]) {
				if _, err := CompilePattern(text); err != nil {
					bad = append(bad, fault.Detail{Field: at + ".values", Message: err.Error()})
				}
			}
		}
	}
	return bad
}

// ParseAge parses an integer number of seconds, minutes, hours or days: 30s, 5m, 12h, 1d.
func ParseAge(s string) (time.Duration, error) {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
	if len(s) > 1 {
		n, err := strconv.ParseUint(s[:len(s)-1], 10, 31)
		if unit := units[s[len(s)-1]]; err == nil && unit > 0 && n <= uint64(maxAge/unit) {
			return time.Duration(n) * unit, nil
		}
	}
	return 0, errors.New("must be a whole number and s, m, h or d, such as 12h, of at most ten years")
}

const maxAge = 3650 * 24 * time.Hour
