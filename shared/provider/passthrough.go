package provider

import (
	"strings"

	"gateway/shared/fault"
)

// PassthroughURL is the address of a request that is forwarded as it is: the provider's
// base URL, then escapedPath, which is the path after the gateway's own base, unchanged
// on the wire. Nothing is cleaned or escaped again. Parse the result with ExactURL.
func (t *Target) PassthroughURL(escapedPath, rawQuery string) (string, error) {
	if !strings.HasPrefix(escapedPath, "/") {
		escapedPath = "/" + escapedPath
	}
	template := t.Provider.Base
	switch t.Provider.ID {
	case "azure-openai":
		if full, ok, err := azureFullHost((t), escapedPath); ok || err != nil {
			return exactQuery(full, rawQuery), err
		}
	case "meshy":
		if strings.Contains(escapedPath, "text-to-3d") {
			template = "https://api.meshy.ai/openapi/v2"
		}
	case "huggingface":
		if t.Field("huggingface_base_url") != "" {
			template = "{huggingface_base_url}"
		}
	}
	base, err := base(t, template)
	if err != nil {
		return "", err
	}
	if t.Provider.ID == "anthropic" && strings.HasSuffix(base, "/v1") && strings.HasPrefix(escapedPath, "/v1/") {
		escapedPath = escapedPath[len("/v1"):] // clients add the version, which the base has already
	}
	return exactQuery(base+escapedPath, rawQuery), nil
}

func exactQuery(rawURL, rawQuery string) string {
	if rawQuery == "" {
		return rawURL
	}
	return rawURL + "?" + rawQuery
}

// azureFullHost parses a path that names a complete Azure host, such as
// /my-resource.openai.azure.com/openai/deployments. A stored credential is only sent to
// its own resource.
func azureFullHost(t *Target, path string) (string, bool, error) {
	const domain = ".openai.azure.com"
	if !strings.Contains(path, domain) {
		return "", false, nil
	}
	rest := strings.TrimLeft(path, "/")
	if cut, ok := strings.CutPrefix(rest, "https:"); ok {
		rest = strings.TrimLeft(cut, "/")
	}
	host, tail, _ := strings.Cut(rest, "/")
	label, ok := strings.CutSuffix(strings.ToLower(host), domain)
	if !ok {
		return "", false, nil // the host is named further on: an ordinary path
	}
	if !hostLabel(label, false) {
		return "", true, fault.Invalid("azure_resource_name", "The host in the path must be <resource>%s", domain)
	}
	if own := strings.ToLower(t.Field("azure_resource_name")); (t.Saved || !t.CallerKey) && label != own {
		return "", true, fault.New(fault.BlockedHost, "azure_resource_name", "A stored credential is only sent to its own Azure resource")
	}
	return "https://" + label + domain + "/" + tail, true, nil
}
