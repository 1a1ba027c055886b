package providers

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/provider"
)

// Prefixes of the fields that a secret mapping fills.
const (
	legacyTarget = "model_config."
	configTarget = "configurations."
)

// Fields of Azure deployments, which an older client sends one by one.
const (
	deployments    = "deploymentConfig"
	deploymentName = "deploymentName"
	azureList      = "azure_deployment_config"
	azureName      = "azure_deployment_name"
	azureVersion   = "azure_api_version"
)

// toConfig are the flat names of virtual keys and the fields of integrations
// that they mean: some of their own, and each field in camel case.
var toConfig, toLegacy = func() (there, back map[string]string) {
	there = map[string]string{
		"apiVersion": azureVersion, "resourceName": "azure_resource_name", deployments: azureList, deploymentName: azureName,
		"customHost": "custom_host", "custom_host": "custom_host", "customHeaders": "custom_headers", "custom_headers": "custom_headers",
	}
	back = map[string]string{"custom_host": "customHost", "custom_headers": "customHeaders"}
	for _, name := range []string{"apiVersion", "resourceName", deployments, deploymentName} {
		back[there[name]] = name
	}
	for _, p := range provider.All() {
		for i := range p.Fields {
			name := p.Fields[i].Name
			there[camel(name)] = name
			if back[name] == "" {
				back[name] = camel(name)
			}
		}
	}
	return there, back
}()

// camel is a name with underscores in camel case: awsAccessKeyId.
func camel(name string) string {
	parts := strings.Split(name, "_")
	for i := 1; i < len(parts); i++ {
		if parts[i] != "" {
			parts[i] = strings.ToUpper(parts[i][:1]) + parts[i][1:]
		}
	}
	return strings.Join(parts, "")
}

// keyFields are those that virtual keys have beside those of providers.
func keyFields() []admin.Field {
	out := []admin.Field{
		{Name: "provider", Doc: "Provider of the catalog, such as openai.", Type: admin.String, Required: true, Min: 1, Max: 64, Trigger: true},
		{Name: "key", Doc: "API key; sealed, never read back.", Type: admin.String, Max: 16_384, Trigger: true},
		admin.FieldOf[[]provider.CredentialInput]("credentials", provider.CredentialsDoc, provider.MaxCredentials),
		admin.FieldOf[[]provider.SecretMapping]("secret_mappings", "Fields from a secret manager: key or model_config.<field>.", 100),
	}
	for _, name := range slices.Sorted(maps.Keys(toConfig)) {
		f := admin.Field{Name: name, Type: admin.Any, Trigger: true, Doc: "Field " + toConfig[name] + " of the provider."}
		if name == deployments {
			f = deploymentField()
		}
		out = append(out, f)
	}
	return out
}

func deploymentField() admin.Field {
	return admin.Field{Name: deployments, Doc: "Azure deployments.", Type: admin.Array, Min: 1, Max: 500, Trigger: true, Of: &admin.Field{Type: admin.Object, Fields: []admin.Field{
		{Name: "apiVersion", Type: admin.String, Required: true, Min: 1, Max: 30},
		{Name: deploymentName, Type: admin.String, Required: true, Min: 1, Max: 128},
		{Name: "alias", Type: admin.String, Max: 255},
		{Name: "is_default", Type: admin.Boolean},
		{Name: "azure_model_slug", Doc: "Model of the catalog, for prices.", Type: admin.String, Max: 255},
	}}}
}

// deploymentNames pairs the members of a deployment.
var deploymentNames = map[string]string{
	"apiVersion": azureVersion, deploymentName: azureName, "alias": "alias", "is_default": "is_default", "azure_model_slug": "azure_model_slug",
}

// legacyChange reads the credentials of a virtual key's body.
func legacyChange(body admin.Values, p *provider.Provider) (*provider.Change, error) {
	ch := &provider.Change{Configurations: make(map[string]any)}
	if body.Has("key") {
		key := body.Text("key")
		ch.Key = &key
	}
	if body.Has("credentials") {
		ch.Credentials = &[]provider.CredentialInput{}
		if err := body.Decode("credentials", ch.Credentials); err != nil {
			return nil, err
		}
	}
	if body.Has("secret_mappings") {
		ch.Mappings = &[]provider.SecretMapping{}
		if err := body.Decode("secret_mappings", ch.Mappings); err != nil {
			return nil, err
		}
		for n := range *ch.Mappings {
			m := &(*ch.Mappings)[n]
			if name, ok := strings.CutPrefix(m.TargetField, legacyTarget); ok {
				if known, ok := toConfig[name]; ok {
					name = known
				}
				m.TargetField = configTarget + name
			} else if m.TargetField != provider.SecretKey {
				return nil, fault.Invalid(fmt.Sprintf("secret_mappings[%d].target_field", n), "must be key or model_config.<field>")
			}
		}
	}
	for sent, name := range toConfig {
		if !body.Has(sent) {
			continue
		}
		if _, twice := ch.Configurations[name]; twice {
			return nil, fault.Invalid(sent, "was sent under two names; send one of them")
		}
		var v any
		if err := body.Decode(sent, &v); err != nil {
			return nil, err
		}
		ch.Configurations[name] = v
	}
	readDeployments(p, ch)
	return ch, nil
}

// readDeployments brings deployments into the form of an integration. A single
// name is the default deployment of an Azure OpenAI resource.
func readDeployments(p *provider.Provider, ch *provider.Change) {
	if _, many := p.Field(azureList); !many {
		return
	}
	if name, ok := ch.Configurations[azureName].(string); ok && ch.Configurations[azureList] == nil {
		one := map[string]any{azureName: name, "is_default": true}
		if v, ok := ch.Configurations[azureVersion].(string); ok {
			one[azureVersion] = v
		}
		ch.Configurations[azureList] = []any{one}
		delete(ch.Configurations, azureName)
		return
	}
	sent, _ := ch.Configurations[azureList].([]any)
	for n := range sent {
		if one, ok := sent[n].(map[string]any); ok {
			sent[n] = renamed(one, deploymentNames)
		}
	}
}

func renamed(object map[string]any, names map[string]string) map[string]any {
	out := make(map[string]any, len(object))
	for name, v := range object {
		if other, ok := names[name]; ok {
			out[other] = v
		}
	}
	return out
}

// firstCredential names a field of the body that belongs to an integration.
func firstCredential(body admin.Values) string {
	for _, name := range append([]string{"key", "credentials", "secret_mappings"}, slices.Sorted(maps.Keys(toConfig))...) {
		if body.Has(name) {
			return name
		}
	}
	return ""
}

// legacyNames gives the fields of a rejection the names that the caller used.
func legacyNames(body admin.Values, err error) error {
	var f *fault.Fault
	if !errors.As(err, &f) {
		return err
	}
	for n := range f.Details {
		f.Details[n].Field = legacyPath(body, f.Details[n].Field)
	}
	if len(f.Details) > 0 {
		return fault.Invalids(f.Details)
	}
	return err
}

func legacyPath(body admin.Values, path string) string {
	rest, ok := strings.CutPrefix(path, configTarget)
	if !ok {
		return path
	}
	end := strings.IndexAny(rest, ".[")
	if end < 0 {
		end = len(rest)
	}
	name, tail := rest[:end], rest[end:]
	for sent, config := range toConfig {
		if config == name && body.Has(sent) {
			return sent + tail
		}
	}
	if legacy, ok := toLegacy[name]; ok {
		name = legacy
	}
	return name + tail
}

// legacyConfig is an integration's configurations in the names of virtual keys,
// secrets masked.
func legacyConfig(i *provider.Integration) map[string]any {
	out := make(map[string]any)
	back := make(map[string]string, len(deploymentNames))
	for legacy, name := range deploymentNames {
		back[name] = legacy
	}
	for name, v := range i.MaskedConfigurations() {
		if list, ok := v.([]any); ok && name == azureList {
			shown := make([]any, 0, len(list))
			for _, e := range list {
				if one, ok := e.(map[string]any); ok {
					shown = append(shown, renamed(one, back))
				}
			}
			v = shown
		}
		if legacy, ok := toLegacy[name]; ok {
			name = legacy
		}
		out[name] = v
	}
	return out
}

func legacyMappings(list []provider.SecretMapping) []provider.SecretMapping {
	out := make([]provider.SecretMapping, len(list))
	for n, m := range list {
		if name, ok := strings.CutPrefix(m.TargetField, configTarget); ok {
			if legacy, ok := toLegacy[name]; ok {
				name = legacy
			}
			m.TargetField = legacyTarget + name
		}
		out[n] = m
	}
	return out
}
