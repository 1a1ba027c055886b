package guard

import "strings"

// credentials lists the credentials of checks or vendors: names separated by spaces. After a
// name, ! marks a required one, @ an address, and = a choice of values separated by |. A name
// followed by a colon is the field that contains the credentials.
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

// credentialsParam returns the parameter with the credentials of a check. It is optional, because a
// guardrail in a config can have credentials for all its checks.
func credentialsParam(id string) Param {
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
