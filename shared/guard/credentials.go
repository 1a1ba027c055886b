package guard

import "strings"

// credentials are the credentials that vendors take, by the check or else by the vendor: names
// separated by spaces. After a name, ! marks one that is required, @ an address, and = a choice
// of words, separated by |. A word with a colon in front names the field that holds the
// credentials.
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

// opening returns the parameter that holds the credentials of a check. It may be absent,
// because a guardrail of a config can have credentials for all of its checks.
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
