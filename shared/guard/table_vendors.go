package guard

import (
	"strings"
)

// words splits a list of words.
func words(text string) []string { return strings.Fields(text) }

// categories returns a parameter with entries of a list.
func categories(name string, required bool, list ...string) Param {
	p := Param{Name: name, Type: Texts, Required: required, Enum: list}
	if required {
		p.Min = 1
	}
	return p
}

// optional returns p as an optional parameter.
func optional(p Param) Param { p.Required = false; return p }

func flag(name string, standard bool) Param { return Param{Name: name, Type: Flag, Default: standard} }

// share returns a threshold parameter from 0 to 1.
func share(name string) Param { return Param{Name: name, Type: Number, Max: 1, Default: 0.5} }

func text(name string) Param { return Param{Name: name, Type: Text, Max: 4096} }

func many(name string) Param { return Param{Name: name, Type: Texts} }

func count(name string, standard int64) Param {
	return Param{Name: name, Type: Integer, Min: 1, Max: 1000, Default: standard}
}

// vendor returns the row of a vendor's check.
func vendor(id string, phase Phase, doc string, params ...Param) *Check {
	return &Check{ID: id, Phase: phase, Category: Vendor, Doc: doc, Params: params}
}

// changing returns the row of a vendor's check that can also change the text.
func changing(id string, phase Phase, doc string, params ...Param) *Check {
	c := vendor(id, phase, doc, append(params, redact)...)
	c.Mutates = true
	return c
}

var (
	azureVersion = text("apiVersion")
	mode         = Param{Name: "mode", Type: Text, Enum: []string{"speed", "balanced", "quality"}, Default: "balanced"}
	slow         = timeout(15_000)
)

// vendorChecks call vendors.
var vendorChecks = []*Check{
	{ID: "acuvity.scan", Phase: Both, Category: Vendor, Mutates: true, Doc: "Acuvity scans the text.", Params: []Param{
		flag("prompt_injection", true), flag("toxic", true), flag("jail_break", true), flag("malicious_url", true), flag("biased", true), flag("harmful", true),
		share("prompt_injection_threshold"), share("toxic_threshold"), share("jail_break_threshold"), share("malicious_url_threshold"), share("biased_threshold"), share("harmful_threshold"),
		flag("language", true), {Name: "language_values", Type: TextOrList, Enum: words("english chinese spanish french german japanese gibberish")},
		flag("pii", true), flag("pii_redact", false), many("pii_categories"), flag("secrets", true), flag("secrets_redact", false), many("secrets_categories")}},
	vendor("akto.scan", Both, "Akto scans the text.", flag("deny", true)),
	vendor("alibaba-cloud-ai.guard", Both, "Evaluates the text with Alibaba Cloud."),
	vendor("aporia.validateProject", Both, "Evaluates the text by an Aporia project.", required(text("projectID"))),
	vendor("azure.contentSafety", Both, "Evaluates how harmful the text is with Azure.", many("blocklistNames"), azureVersion, Param{Name: "severity", Type: Integer, Max: 7, Default: 2}, categories("categories", false, words("Hate SelfHarm Sexual Violence")...)),
	changing("azure.pii", Both, "Detects personal data with Azure.", Param{Name: "domain", Type: Text, Enum: []string{"none", "phi"}, Default: "none"}, azureVersion, text("modelVersion"), text("language"), many("piiCategories")),
	vendor("azure.shieldPrompt", Before, "Detects attacks with Azure.", azureVersion),
	vendor("azure.protectedMaterial", After, "Detects protected material with Azure.", azureVersion),
	changing("bedrock.guard", Both, "Evaluates the text with a Bedrock guardrail.", required(text("guardrailId")), required(Param{Name: "guardrailVersion", Type: Text, Min: 1, Max: 64}), Param{Name: "customHost", Type: URL}),
	{ID: "cato.scan", Phase: Both, Category: Vendor, Mutates: true, Doc: "Cato scans the conversation.", Params: []Param{text("userEmail"), text("keyAlias")}},
	changing("crowdstrike-aidr.guardChatCompletions", Both, "Evaluates the conversation with CrowdStrike."),
	{ID: "exa.online", Phase: Before, Category: Vendor, Mutates: true, Doc: "Adds search results of Exa to the request.", Params: []Param{
		count("numResults", 10), text("prefix"), text("suffix"), many("includeDomains"), many("excludeDomains"), timeout(10_000)}},
	changing("f5-guardrails.scan", Both, "F5 scans the text.", required(text("projectId"))),
	vendor("javelin.guardrails", Both, "Evaluates the text with Javelin."),
	{ID: "lakera.guard", Phase: Both, Category: Vendor, Mutates: true, Doc: "Evaluates the text with Lakera.", Params: []Param{text("projectID"), flag("endInclusive", false), timeout(30_000)}},
	vendor("lasso.classify", Both, "Evaluates the text with Lasso.", text("conversationId"), text("userId")),
	vendor("mistral.moderateContent", Both, "Moderates the text with Mistral.", categories("categories", true, words("sexual hate_and_discrimination violence_and_threats dangerous_and_criminal_content selfharm health financial law pii")...), text("model")),
	vendor("pangea.textGuard", Both, "Evaluates the text with Pangea.", text("recipe"), flag("debug", false), Param{Name: "overrides", Type: Object}),
	changing("pangea.pii", Both, "Detects personal data with Pangea."),
	vendor("panw-prisma-airs.intercept", Both, "Prisma AIRS scans the text.", text("profile_name"), text("profile_id"), text("ai_model"), text("app_user"), text("app_name"),
		Param{Name: "scan_scope", Type: Text, Enum: []string{"last_message", "last_user_message", "user_messages", "all_messages"}, Default: "last_message"}, flag("strip_scaffolding", false)),
	vendor("patronus.isConcise", After, "The response is concise (Patronus).", slow),
	vendor("patronus.isHelpful", After, "The response is helpful (Patronus).", slow),
	vendor("patronus.isPolite", After, "The response is polite (Patronus).", slow),
	vendor("patronus.noApologies", After, "The response does not apologize (Patronus).", slow),
	vendor("patronus.noGenderBias", After, "The response has no gender bias (Patronus).", slow),
	vendor("patronus.noRacialBias", After, "The response has no racial bias (Patronus).", slow),
	vendor("patronus.retrievalAnswerRelevance", After, "The response is relevant to the question (Patronus).", slow),
	vendor("patronus.retrievalHallucination", After, "The response is grounded in the context (Patronus).", slow),
	vendor("patronus.toxicity", After, "The response is not toxic (Patronus).", slow),
	vendor("patronus.custom", After, "Evaluates the text by a Patronus profile.", required(Param{Name: "profile", Type: Text, Min: 1, Max: 255}), slow),
	changing("patronus.pii", After, "Detects personal data with Patronus.", slow),
	changing("patronus.phi", After, "Detects health data with Patronus.", slow),
	vendor("pillar.scanPrompt", Before, "Pillar scans the prompt.", categories("scanners", true, words("prompt_injection pii secrets toxic_language invisible_characters")...)),
	vendor("pillar.scanResponse", After, "Pillar scans the response.", categories("scanners", true, words("pii secrets toxic_language prompt_injection invisible_characters")...)),
	vendor("promptfoo.guard", Before, "Detects jailbreaks with Promptfoo."),
	changing("promptfoo.pii", Both, "Detects personal data with Promptfoo."),
	vendor("promptfoo.harm", Both, "Detects harmful content with Promptfoo."),
	changing("promptsecurity.protectPrompt", Before, "Evaluates the prompt with Prompt Security.", Param{Name: "policy", Type: Object}, flag("monitorOnly", false), text("user"), many("userGroups")),
	changing("promptsecurity.protectResponse", After, "Evaluates the response with Prompt Security.", Param{Name: "policy", Type: Object}, flag("monitorOnly", false), text("user"), many("userGroups")),
	vendor("qualifire.contentModeration", Both, "Moderates the text with Qualifire.", timeout(60_000)),
	vendor("qualifire.pii", Both, "Detects personal data with Qualifire.", timeout(60_000)),
	vendor("qualifire.promptInjections", Before, "Detects prompt injections with Qualifire.", timeout(60_000)),
	vendor("qualifire.hallucinations", After, "Detects hallucinations with Qualifire.", mode, timeout(60_000)),
	vendor("qualifire.grounding", After, "The response is grounded in the context (Qualifire).", mode, timeout(60_000)),
	vendor("qualifire.toolUseQuality", After, "Evaluates tool use with Qualifire.", mode, timeout(60_000)),
	vendor("qualifire.policy", Both, "Evaluates the text by Qualifire policies.", Param{Name: "policies", Type: Texts, Required: true, Min: 1}, mode, timeout(60_000),
		Param{Name: "policy_target", Type: Text, Enum: []string{"input", "output", "both"}, Default: "both"}),
	vendor("singulr.guard", Both, "Evaluates the text with Singulr."),
	vendor("sydelabs.sydeguard", Both, "SydeLabs scores the prompt.", share("prompt_injection_threshold"), share("toxicity_threshold"), share("evasion_threshold")),
	{ID: "tavily.online", Phase: Before, Category: Vendor, Mutates: true, Doc: "Adds search results of Tavily to the request.", Params: []Param{
		text("prefix"), text("suffix"), count("maxResults", 5), {Name: "searchDepth", Type: Text, Enum: words("advanced basic fast ultra-fast"), Default: "basic"}, count("chunksPerSource", 3),
		text("topic"), text("timeRange"), text("startDate"), text("endDate"), {Name: "includeAnswer", Type: Anything}, {Name: "includeRawContent", Type: Anything}, flag("includeImages", false),
		many("includeDomains"), many("excludeDomains"), text("country"), flag("autoParameters", false), flag("exactMatch", false), flag("includeUsage", false), flag("safeSearch", false), timeout(30_000)}},
	vendor("walledai.walledprotect", Both, "Evaluates the text with Walled AI.", flag("generic_safety_check", true), many("greetings_list"), many("pii_list"), many("compliance_list")),
	vendor("zscaler.scan", Both, "Zscaler scans the text.", required(Param{Name: "policyId", Type: TextOrList, Min: 1}), timeout(10_000)),
}

// Document returns a JSON Schema of the checks of a guardrail, from the table.
func Document() map[string]any {
	rows := make([]any, len(all))
	for i, c := range all {
		members, required := map[string]any{}, []string{}
		for _, p := range c.Parameters() {
			members[p.Name] = p.schema()
			if p.Required {
				required = append(required, p.Name)
			}
		}
		parameters := map[string]any{"type": "object", "properties": members}
		if len(required) > 0 {
			parameters["required"] = required
		}
		ids := append([]string{c.ID}, c.Aliases...)
		row := map[string]any{"type": "object", "description": c.Doc, "properties": map[string]any{
			"id": map[string]any{"enum": ids}, "parameters": parameters,
		}}
		row["required"] = []string{"id"}
		if len(required) > 0 {
			row["required"] = []string{"id", "parameters"}
		}
		rows[i] = row
	}
	check := map[string]any{"type": "object", "anyOf": rows, "properties": map[string]any{
		"name": map[string]any{"type": "string", "maxLength": 255}, "is_enabled": map[string]any{"type": "boolean", "default": true},
		"forward_headers": map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
	}}
	return map[string]any{"type": "array", "minItems": 1, "maxItems": MaxChecks, "items": check}
}

func (p *Param) schema() map[string]any {
	s := map[string]any{}
	switch p.Type {
	case Text, Pattern, Replaced:
		s["type"] = "string"
		if len(p.Enum) > 0 {
			s["enum"] = p.Enum
		}
	case URL:
		s["type"], s["format"], s["example"] = "string", "uri", "https://checks.example.com/v1"
	case Integer:
		s["type"] = "integer"
	case Number:
		s["type"] = "number"
	case Flag:
		s["type"] = "boolean"
	case Texts, Headers:
		s["type"], s["items"] = "array", p.entry()
		if p.Min > 0 {
			s["minItems"] = p.Min
		}
	case Listed, TextOrList:
		s["anyOf"] = []any{map[string]any{"type": "array", "items": p.entry()}, map[string]any{"type": "string"}}
	case Object:
		s["type"] = []string{"object", "string"}
		p.members(s)
	case Mapped:
		text := map[string]any{"type": "string", "maxLength": 255}
		s["type"], s["description"] = "array", "Credentials from a secret manager, by target_field: credentials.apiKey."
		s["items"] = map[string]any{"type": "object", "required": []string{"target_field", "secret_reference_id"}, "properties": map[string]any{
			"target_field": text, "secret_reference_id": text, "secret_key": text, "value_format": map[string]any{"enum": []string{"string", "json"}}}}
	case Schema:
		s["type"], s["example"] = "object", map[string]any{"type": "object"}
	}
	if p.Type == Integer || p.Type == Number {
		s["minimum"] = p.Min
		if p.Max != 0 {
			s["maximum"] = p.Max
		}
	}
	if p.Default != nil {
		s["default"] = p.Default
	}
	return s
}

// members describes the known fields of an object.
func (p *Param) members(s map[string]any) {
	if len(p.Members) == 0 {
		return
	}
	properties, required := map[string]any{}, []string{}
	for i := range p.Members {
		m := &p.Members[i]
		properties[m.Name] = m.schema()
		if m.Required {
			required = append(required, m.Name)
		}
	}
	s["properties"] = properties
	if len(required) > 0 {
		s["required"] = required
	}
}

func (p *Param) entry() map[string]any {
	e := map[string]any{"type": "string"}
	if len(p.Enum) > 0 {
		e["enum"] = p.Enum
	}
	return e
}
