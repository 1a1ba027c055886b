package guard

import "strings"

// credentials are those that vendors take, by the vendor or, before that, by the
// check: names with spaces between them, ! behind one that is needed, @ behind an
// address, = and words with | between them for one of a few. What stands before a
// colon is the member that holds them.
var credentials = map[string]string{
	"acuvity":          "apiKey!",
	"akto":             "apiKey! apiDomain!",
	"alibaba-cloud-ai": "accessKeyId! accessKeySecret! regionId",
	"aporia":           "apiKey! apiEndpoint@",
	"azure":            "contentSafety: " + azureCredentials,
	"azure.pii":        "pii: " + azureCredentials,
	"bedrock":          "awsAccessKeyId awsSecretAccessKey awsSessionToken awsRegion awsAuthType=accessKey|assumedRole awsRoleArn awsExternalId customHost@",
	"cato":             "apiKey! apiBase@",
	"crowdstrike-aidr": "baseUrl!@ apiKey!",
	"exa":              "apiKey!",
	"f5-guardrails":    "apiKey! calypsoUrl@",
	"javelin":          "apiKey! application! domain!",
	"lakera":           "apiKey! apiBase@",
	"lasso":            "apiKey! apiEndpoint@",
	"mistral":          "apiKey!",
	"pangea":           "domain! apiKey!",
	"panw-prisma-airs": "AIRS_API_KEY!",
	"patronus":         "apiKey!",
	"pillar":           "apiKey!",
	"promptsecurity":   "apiDomain! apiKey!",
	"qualifire":        "apiKey!",
	"sydelabs":         "apiKey!",
	"tavily":           "apiKey!",
	"walledai":         "apiKey!",
	"zscaler":          "apiKey zscalerApiKey baseUrl@",
}

const azureCredentials = "resourceName! apiKey azureAuthMode=apiKey|entra|managed clientId clientSecret tenantId customHost@"

// opening is the parameter that has the credentials of a check. It may be absent: a
// guardrail of a config can have them for all of its checks.
func opening(id string) Param {
	vendor, _, _ := strings.Cut(id, ".")
	p := Param{Name: "credentials", Type: Object}
	spec, ok := credentials[id]
	if !ok {
		spec = credentials[vendor]
	}
	outer, inner, nested := strings.Cut(spec, ": ")
	if nested {
		spec = inner
	}
	for _, name := range words(spec) {
		m := Param{Type: Text, Max: 16_384}
		name, choice, _ := strings.Cut(name, "=")
		if choice != "" {
			m.Enum = strings.Split(choice, "|")
		}
		if name, ok = strings.CutSuffix(name, "@"); ok {
			m.Type, m.Max = URL, 2048
		}
		m.Name, m.Required = strings.CutSuffix(name, "!")
		p.Members = append(p.Members, m)
	}
	if nested {
		p.Members = []Param{{Name: outer, Type: Object, Required: true, Members: p.Members}}
	}
	return p
}
