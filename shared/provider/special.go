package provider

import (
	"encoding/json"
	"net/url"
	"strings"

	"gateway/shared/fault"
)

// place is the address of an operation, as templates.
type place struct{ base, prefix, path string }

// regionalBase returns the base URL template of a provider with regional hosts that need
// special treatment.
func regionalBase(t *Target, template string) string {
	switch t.Provider.ID {
	case "vertex-ai":
		switch region := t.Field("vertex_region"); region {
		case "global":
			return "https://aiplatform.googleapis.com"
		case "us", "eu":
			return "https://aiplatform." + region + ".rep.googleapis.com"
		}
	case "byteplus":
		// The host names the region without its number.
		if region, numbered := strings.CutSuffix(t.Field("byteplus_region"), "-1"); numbered && hostLabel(region, false) {
			return strings.Replace(template, "{byteplus_region|ap-southeast}", region, 1)
		}
	}
	return template
}

// special changes the address for the few providers with addresses that a template cannot
// express.
func special(t *Target, op Operation, a *addressParams, p *place) error {
	switch t.Provider.ID {
	case "azure-openai":
		azureOpenAI(t, op, a, p)
	case "azure-ai":
		azureAI(t, op, p)
	case "google":
		a.model = strings.TrimPrefix(a.model, "models/") // the list of models names them so
	case "vertex-ai":
		return vertex(t, op, a, p)
	case "huggingface":
		if own := t.Field("huggingface_base_url"); own != "" {
			if p.base = "{huggingface_base_url}"; !strings.HasSuffix(strings.TrimRight(own, "/"), "/v1") {
				p.prefix = "/v1"
			}
		}
	case "databricks":
		databricks(t, op, p)
	case "predibase":
		// "base:adapter": the base model is in the path, the adapter in the body.
		a.model, _, _ = strings.Cut(a.model, ":")
	case "bedrock":
		bedrock(t, op, a, p)
	case "bedrock-mantle":
		if op == Chat && mantleClaude(a.model) {
			p.base, p.path = mantleAnthropic, "/messages"
		}
	case "stability-ai":
		a.stability(p)
	case "fireworks-ai":
		if op == ImagesGenerate {
			a.fireworks(p)
		}
	}
	return nil
}

// stability: the older models have paths of their own. Those of Stable Diffusion 3 share
// one, and the body names the model.
func (a *addressParams) stability(p *place) {
	switch {
	case strings.HasPrefix(a.model, "stable-diffusion-"):
		p.path = "/v1/generation/{model}/text-to-image"
	case strings.HasPrefix(a.model, "sd3"):
		a.model = "sd3"
	default:
		a.model = strings.TrimPrefix(a.model, "stable-image-")
	}
}

// fireworks: the path has an image model's full name; FLUX is a workflow.
func (a *addressParams) fireworks(p *place) {
	if !strings.HasPrefix(a.model, "accounts/") && a.model != "" {
		a.model = "accounts/fireworks/models/" + a.model
	}
	if strings.Contains(a.model, "/flux-") {
		p.path = "/workflows/{model}/text_to_image"
	}
}

// azureOpenAI: the operations on a model are below its deployment, the others below the
// resource. api_version v1 is the style without either.
func azureOpenAI(t *Target, op Operation, a *addressParams, p *place) {
	d := t.Deployment(a.model)
	if op == Realtime && d.APIVersion == defaultAzureVersion {
		d.APIVersion = "v1" // only preview versions have it, but no dated one
	}
	query := "?api-version=" + url.QueryEscape(d.APIVersion)
	if d.APIVersion == "v1" {
		p.prefix, query = "/v1", ""
	}
	switch op {
	case Realtime:
		p.path = "/realtime" + query
		name := "deployment="
		if query == "" {
			name = "model="
		}
		p.path = AddQuery(p.path, name+url.QueryEscape(d.Name))
	case Chat, Completions, Embeddings, ImagesGenerate, ImagesEdit, AudioSpeech, AudioTranscription, AudioTranslation:
		if query != "" {
			a.model = d.Name
			p.prefix = ""
			p.path = "/deployments/{model!}" + p.path
		}
		p.path += query
	default:
		p.path += query
	}
}

// Deployment is the Azure deployment that serves model: found by alias, then by its name,
// then the default one, then the field azure_deployment_id, then model itself.
func (t *Target) Deployment(model string) Deployment {
	version := t.Field("azure_api_version")
	if version == "" {
		version = defaultAzureVersion
	}
	pick := Deployment{Name: t.Field("azure_deployment_id"), APIVersion: version}
	found := false
	for _, match := range []func(d Deployment) bool{
		func(d Deployment) bool { return d.Alias == model },
		func(d Deployment) bool { return d.Name == model },
		func(d Deployment) bool { return d.Default && pick.Name == "" },
	} {
		for _, d := range t.Credential.Deployments {
			if !found && match(d) {
				pick, found = d, true
			}
		}
	}
	if pick.Name == "" {
		pick.Name = model
	}
	if pick.APIVersion == "" {
		pick.APIVersion = version
	}
	return pick
}

// defaultAzureVersion is the last dated version of the data plane that is not a preview. It
// is used when a target names none.
const defaultAzureVersion = "2024-10-21"

// UpstreamModel is the model name that t expects in the body, such as the deployment in
// Azure's v1 style, a Vertex name without its publisher or a Predibase adapter.
func (t *Target) UpstreamModel(model string) string {
	switch t.Provider.ID {
	case "azure-openai":
		if d := t.Deployment(model); d.APIVersion == "v1" {
			return d.Name
		}
	case "vertex-ai":
		publisher, name := vertexModel(model)
		if publisher == "meta" {
			return "meta/" + name
		}
		return name
	case "predibase":
		if _, adapter, ok := strings.Cut(model, ":"); ok {
			return adapter
		}
	case "mistral-ai":
		return strings.TrimPrefix(model, "mistralai.")
	}
	return model
}

// mantleClaude recognizes the models that Mantle serves in the Anthropic dialect.
func mantleClaude(model string) bool { return strings.HasPrefix(model, "anthropic.") }

// anthropicDeployment: a Foundry URL that names Anthropic serves its Messages.
func (t *Target) anthropicDeployment() bool {
	return t.Provider.ID == "azure-ai" && strings.Contains(t.Field("azure_foundry_url"), "anthropic")
}

func azureAI(t *Target, op Operation, p *place) {
	if t.anthropicDeployment() {
		if op == Chat || op == Messages {
			p.path = "/v1/messages"
		}
		return
	}
	if op == OCR {
		// The host serves other makers' models below their names.
		if u, err := url.Parse(t.Field("azure_foundry_url")); err == nil && u.Host != "" {
			p.base = u.Scheme + "://" + u.Host + "/providers/mistral/azure"
		}
	}
	if op := string(op); strings.HasPrefix(op, "files_") || strings.HasPrefix(op, "batches_") {
		if u, err := url.Parse(t.Field("azure_foundry_url")); err == nil && u.Host != "" {
			p.base = u.Scheme + "://" + u.Host + "/openai"
		}
	}
	if v := t.Field("azure_api_version"); v != "" {
		p.path = AddQuery(p.path, "api-version="+url.QueryEscape(v))
	}
}

func databricks(t *Target, op Operation, p *place) {
	switch {
	case op == Messages:
		p.prefix = "/ai-gateway/anthropic"
	case t.Field("databricks_serving_endpoint_name") != "":
		p.path = "/serving-endpoints/{databricks_serving_endpoint_name}/invocations"
	default:
		p.prefix = "/serving-endpoints"
	}
}

// vertexModel splits the publisher off a model name.
func vertexModel(model string) (publisher, name string) {
	for _, p := range []string{"google", "anthropic", "mistralai", "meta", "endpoints"} {
		if rest, ok := strings.CutPrefix(model, p+"."); ok {
			return p, rest
		}
	}
	return "google", model
}

// VertexEmbedContent is the dialect of the Gemini embedding models that have no :predict on
// Vertex AI.
const VertexEmbedContent = "vertex.embed_content"

// embedsContent reports whether a model of Vertex AI makes vectors by :embedContent: those
// of Gemini except the first.
func embedsContent(publisher, name string) bool {
	return publisher == "google" && strings.HasPrefix(name, "gemini-embedding-") &&
		!strings.HasPrefix(name, "gemini-embedding-001") && !strings.HasPrefix(name, "gemini-embedding-exp")
}

func vertex(t *Target, op Operation, a *addressParams, p *place) error {
	project, err := vertexProject(t)
	if err != nil {
		return err
	}
	scope := "/v1/projects/" + project + "/locations/{vertex_region}"
	if strings.HasPrefix(p.path, "/") { // jobs
		p.path = scope + p.path
		return nil
	}
	publisher, name := vertexModel(a.model)
	if publisher == "meta" || publisher == "endpoints" {
		endpoint := "openapi"
		if publisher == "endpoints" {
			endpoint = "{model!}"
		} else {
			scope = strings.Replace(scope, "/v1/", "/v1beta1/", 1)
		}
		p.path, a.model = scope+"/endpoints/"+endpoint+"/chat/completions", name
		return nil
	}
	suffix := p.path
	if op == Embeddings && embedsContent(publisher, name) {
		suffix = ":embedContent"
	}
	if publisher != "google" && (op == Chat || op == Messages) {
		suffix = ":rawPredict"
		if a.stream {
			suffix = ":streamRawPredict"
		}
	}
	if a.model = name; op == MessagesCountTokens {
		a.model = "count-tokens"
	}
	p.path = scope + "/publishers/" + publisher + "/models/{model}" + suffix
	return nil
}

// vertexProject is the project of the service account or else the field vertex_project_id.
func vertexProject(t *Target) (string, error) {
	project := t.Field("vertex_project_id")
	if account := t.Field("vertex_service_account_json"); account != "" {
		var key struct {
			ProjectID string `json:"project_id"`
		}
		if json.Unmarshal([]byte(account), &key) != nil {
			return "", fault.Invalid("vertex_service_account_json", "vertex_service_account_json must be the JSON key file of a service account")
		}
		if key.ProjectID != "" {
			project = key.ProjectID
		}
	}
	if project == "" {
		return "", fault.Invalid("vertex_project_id", "vertex_project_id is required by vertex-ai when no service account names a project")
	}
	if !pathSegment(project) {
		return "", fault.Invalid("vertex_project_id", "vertex_project_id %s", PathSegment.rule())
	}
	return project, nil
}

// DialectOf is the dialect that the target speaks for op and model.
func (t *Target) DialectOf(op Operation, model string) string {
	if op == Chat && t.Provider.ID == "bedrock" && invoked(bedrockID(model)) {
		return BedrockInvoke
	}
	if op == Chat && (t.anthropicDeployment() || t.Provider.ID == "bedrock-mantle" && mantleClaude(model)) {
		return AnthropicMessages
	}
	if t.Provider.ID == "vertex-ai" {
		publisher, name := vertexModel(model)
		switch op {
		case Embeddings:
			if embedsContent(publisher, name) {
				return VertexEmbedContent
			}
		case Chat:
			if publisher == "anthropic" {
				return AnthropicMessages
			}
			if vertexPublishers[publisher] != nil {
				return OpenAIChat
			}
		case Messages, MessagesCountTokens:
			if publisher != "anthropic" {
				return "" // it is a conversation in the publisher's own dialect
			}
		}
	}
	return t.Provider.DialectOf(op)
}
