package migrate

import (
	"slices"
	"strings"

	"gateway/local/document"
)

// judge specifies what a guardrail of the source is here.
type judge struct {
	check      string
	key        string            // name of the key among the credentials; "" if there is none
	address    string            // name of the address among the credentials
	under      string            // object of the credentials that has them
	parameters map[string]any    // that it always has
	names      map[string]string // parameters of the source to ours
	note       string
}

// judges are the guardrails of the source that have an equivalent.
var judges = map[string]judge{
	"lakera": {check: "lakera.guard", key: "apiKey"}, "lakera_v2": {check: "lakera.guard", key: "apiKey", names: map[string]string{"project_id": "projectID"}},
	"aporia":              {check: "aporia.validateProject", key: "apiKey", address: "apiEndpoint", names: map[string]string{"project_id": "projectID"}},
	"bedrock":             {check: "bedrock.guard", names: map[string]string{"guardrailIdentifier": "guardrailId", "guardrailVersion": "guardrailVersion"}},
	"azure/prompt_shield": {check: "azure.shieldPrompt", key: "apiKey", address: "customHost", under: "contentSafety"}, "azure/text_moderations": {check: "azure.contentSafety", key: "apiKey", address: "customHost", under: "contentSafety", names: map[string]string{"severity_threshold": "severity", "categories": "categories"}},
	"presidio":                {check: "gateway.pii", note: "the gateway finds personal data itself"},
	"hide-secrets":            {check: "gateway.secrets", parameters: map[string]any{"redact": true}},
	"hide_secrets":            {check: "gateway.secrets", parameters: map[string]any{"redact": true}},
	"openai_moderation":       {check: "gateway.moderateContent", parameters: map[string]any{"categories": []any{"hate", "hate/threatening", "harassment", "harassment/threatening", "self-harm", "self-harm/intent", "self-harm/instructions", "sexual", "sexual/minors", "violence", "violence/graphic"}}, note: "the gateway judges itself"},
	"pangea":                  {check: "pangea.textGuard", key: "apiKey", address: "domain", names: map[string]string{"pangea_input_recipe": "recipe"}},
	"lasso":                   {check: "lasso.classify", key: "apiKey", address: "apiEndpoint"},
	"pillar":                  {check: "pillar.scanPrompt", key: "apiKey"},
	"panw_prisma_airs":        {check: "panw-prisma-airs.intercept", key: "AIRS_API_KEY", names: map[string]string{"profile_name": "profile_name", "app_name": "app_name"}},
	"prompt_security":         {check: "promptsecurity.protectPrompt", key: "apiKey", address: "apiDomain"},
	"zscaler_ai_guard":        {check: "zscaler.scan", key: "apiKey", address: "baseUrl", names: map[string]string{"policy_id": "policyId"}},
	"javelin":                 {check: "javelin.guardrails", key: "apiKey", address: "domain", names: map[string]string{}},
	"detect_prompt_injection": {check: "gateway.promptInjection"}, "llm_as_a_judge": {}, "prompt_injection": {check: "gateway.promptInjection"},
	"akto": {check: "akto.scan", key: "apiKey", address: "apiDomain"}, "crowdstrike_aidr": {check: "crowdstrike-aidr.guardChatCompletions", key: "apiKey", address: "baseUrl"},
}

func readGuardrails(l *importer) error {
	l.attached = map[string][]any{}
	list := l.root.Get("guardrails")
	if list.Kind() == document.Null {
		old := l.root.Get("litellm_settings").Get("guardrails") // the older form
		l.not(old, "write guardrails as a list of guardrail_name and litellm_params")
	}
	if err := requireMaps(list, "guardrails"); err != nil {
		return err
	}
	for _, item := range list.Items() {
		if err := readGuardrail(l, item); err != nil {
			return err
		}
	}
	return nil
}

func readGuardrail(l *importer, item *document.Node) error {
	params := item.Get("litellm_params")
	if err := params.Expect("guardrails[].litellm_params", document.Map); err != nil {
		return err
	}
	kind := params.Get("guardrail").Scalar()
	j, ok := judges[kind]
	if kind == "litellm_content_filter" {
		j, ok = contentFilter(params.Get("categories")), true
	}
	if !ok || j.check == "" {
		if strings.Contains(kind, ".") {
			l.not(item, "code of the source; write a guardrail with default.webhook")
		} else {
			l.not(item, "there is no equivalent check; write a guardrail with default.webhook")
		}
		return nil
	}
	name := item.Get("guardrail_name").Scalar()
	if name == "" {
		name = kind
	}
	parameters := map[string]any{}
	for k, v := range j.parameters {
		parameters[k] = v
	}
	modes := []string{"pre_call"}
	always := false
	credentials := map[string]any{}
	for _, f := range params.Fields() {
		v := f.Value
		switch {
		case f.Name == "guardrail":
			l.mapped(v, "check "+j.check)
			if j.note != "" {
				l.changed(v, "check "+j.check+": "+j.note)
			}
		case f.Name == "mode":
			modes = readModes(l, v)
		case f.Name == "default_on":
			always = v.True()
			l.mapped(v, "guardrail of the config for imported models")
			if !always {
				l.changed(v, "is saved; name it in a config to use it")
			}
		case f.Name == "api_key" && j.key != "":
			credentials[j.key] = l.secretText(v.Scalar(), "guardrails_"+name+"_api_key")
			l.mapped(v, "credential of the check, stored encrypted")
		case f.Name == "api_base" && j.address != "":
			credentials[j.address] = l.text(v)
			l.mapped(v, "address of the check")
		case kind == "bedrock" && strings.HasPrefix(f.Name, "aws_"):
			awsCredential(l, credentials, f, name)
		case kind == "presidio":
			readPresidio(l, parameters, f)
		case kind == "litellm_content_filter" && f.Name == "categories":
			l.changed(v, "check "+j.check+", which judges by words and patterns of its own")
		case j.names[f.Name] != "":
			parameters[j.names[f.Name]] = escaped(v.Value())
			l.mapped(v, j.names[f.Name]+" of the check")
		default:
			l.not(v, "the check "+j.check+" has no such parameter")
		}
	}
	if len(credentials) > 0 {
		c := credentials
		if j.under != "" {
			if address, ok := c[j.address].(string); ok {
				c["resourceName"], _ = azureResource(address)
			}
			c = map[string]any{j.under: c}
		}
		parameters["credentials"] = c
	}
	l.mapped(item.Get("guardrail_name"), "name of the guardrail")
	l.changed(item.Get("guardrail_info"), "guardrails have no description")
	saveGuardrail(l, name, j.check, parameters, modes, always)
	return nil
}

// contentFilter returns the check for the categories of the source's own filter, or none: one check
// replaces the filter only if all its categories are of one kind.
func contentFilter(categories *document.Node) judge {
	check := ""
	for _, c := range categories.Items() {
		name, is := c.Get("category").Scalar(), ""
		for prefix, to := range map[string]string{"prompt_injection": "gateway.promptInjection", "harmful_toxic": "gateway.profanity"} {
			if strings.HasPrefix(name, prefix) {
				is = to
			}
		}
		if is == "" || check != "" && check != is {
			return judge{}
		}
		check = is
	}
	return judge{check: check}
}

// saveGuardrail adds a guardrail and attaches it to the config.
func saveGuardrail(l *importer, name, check string, parameters map[string]any, modes []string, always bool) {
	slug := l.origin + "-guardrail-" + identifier(name)
	l.add("guardrails", map[string]any{
		"slug": slug, "name": name, "checks": []any{map[string]any{"id": check, "parameters": parameters}},
		"actions": map[string]any{"deny": !slices.Contains(modes, "logging_only"), "async": slices.Contains(modes, "logging_only")},
	})
	if !always {
		return
	}
	for _, m := range modes {
		to := "input_guardrails"
		if m == "post_call" {
			to = "output_guardrails"
		}
		if !slices.Contains(l.attached[to], any(slug)) {
			l.attached[to] = append(l.attached[to], slug)
		}
	}
}

func readModes(l *importer, v *document.Node) (modes []string) {
	items := v.Items()
	if v.Kind() == document.Text {
		items = []*document.Node{v}
	}
	for _, m := range items {
		switch m.Scalar() {
		case "pre_call", "pre_mcp_call":
			l.mapped(m, "input guardrail")
			modes = append(modes, "pre_call")
		case "during_call", "during_mcp_call":
			l.changed(m, "input guardrail: the request waits for it")
			modes = append(modes, "pre_call")
		case "post_call":
			l.mapped(m, "output guardrail")
			modes = append(modes, "post_call")
		case "logging_only":
			l.changed(m, "asynchronous guardrail: it only reports")
			modes = append(modes, "logging_only")
		default:
			l.not(m, "is not a known mode")
		}
	}
	if len(modes) == 0 {
		modes = []string{"pre_call"}
		l.changed(v, "input guardrail")
	}
	return modes
}

func awsCredential(l *importer, to map[string]any, f document.Field, name string) {
	names := map[string]string{"aws_region_name": "awsRegion", "aws_access_key_id": "awsAccessKeyId", "aws_secret_access_key": "awsSecretAccessKey", "aws_session_token": "awsSessionToken", "aws_role_name": "awsRoleArn"}
	into, ok := names[f.Name]
	if !ok {
		l.not(f.Value, "the check bedrock.guard has no such credential")
		return
	}
	if into == "awsRegion" || into == "awsRoleArn" {
		to[into] = l.text(f.Value)
	} else {
		to[into] = l.secretText(f.Value.Scalar(), "guardrails_"+name+"_"+f.Name)
	}
	if into == "awsRoleArn" {
		to["awsAuthType"] = "assumedRole"
	}
	l.mapped(f.Value, into+" of the check")
}

// people are the kinds of personal data of Presidio that the gateway finds.
var people = map[string]string{
	"EMAIL_ADDRESS": "EMAIL_ADDRESS", "PHONE_NUMBER": "PHONE_NUMBER", "LOCATION": "LOCATION_ADDRESS", "PERSON": "NAME", "IP_ADDRESS": "IP_ADDRESS", "CREDIT_CARD": "CREDIT_CARD", "US_SSN": "SSN", "IBAN_CODE": "IBAN",
	"US_PASSPORT": "NATIONAL_ID", "UK_NHS": "NATIONAL_ID", "ES_NIF": "NATIONAL_ID", "IT_FISCAL_CODE": "NATIONAL_ID", "PL_PESEL": "NATIONAL_ID", "IN_AADHAAR": "NATIONAL_ID",
}

func readPresidio(l *importer, parameters map[string]any, f document.Field) {
	if f.Name == "output_parse_pii" && f.Value.Kind() == document.Bool {
		parameters["restore"] = f.Value.True()
		l.mapped(f.Value, "restore of the check")
		return
	}
	if f.Name != "pii_entities_config" {
		l.not(f.Value, "the gateway finds personal data itself, without a service")
		return
	}
	var kinds []any
	for _, e := range f.Value.Fields() {
		kind, ok := people[e.Name]
		if !ok {
			l.not(e.Value, "the check gateway.pii does not find this")
			continue
		}
		l.mapped(e.Value, "category "+kind+" of the check")
		if e.Value.Scalar() == "MASK" {
			parameters["redact"] = true
		}
		if !slices.Contains(kinds, any(kind)) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) > 0 {
		parameters["categories"] = kinds
	}
}
