package provider

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gateway/shared/chat"
	"gateway/shared/fault"
)

// TraitsFor returns Provider.Traits with the parts that depend on the target's credential: the
// model of a Bedrock inference profile and the requested betas. It includes what the gateway
// does for the target before a body is encoded.
func (t *Target) TraitsFor(ctx context.Context, model string) chat.Traits {
	traits := credentialTraits(t, ctx, model)
	if t.ownHost() {
		t.permit(&traits, model)
	}
	traits.Extended = t.widening(model)
	traits.NoThreads = t.Provider.ID != "anthropic" && t.Provider.ID != "claude-platform-aws"
	t.Provider.mediaBytes(&traits, model)
	return traits
}

func credentialTraits(t *Target, ctx context.Context, model string) chat.Traits {
	if t.Provider.ID == "bedrock-mantle" && mantleClaude(model) {
		traits := chat.Traits{Provider: t.Provider.ID}
		claude(&traits, strings.TrimPrefix(model, "anthropic."))
		return traits
	}
	if t.anthropicDeployment() {
		// Anthropic's Messages, under the names of the host's owner.
		traits := chat.Traits{Provider: t.Provider.ID, Schema: chat.SchemaNative, Thinking: chat.ThinksEither}
		if i := strings.Index(model, "claude-"); i >= 0 {
			claude(&traits, model[i:])
		}
		return traits
	}
	if t.Provider.ID == "azure-openai" {
		if d := t.Deployment(model); d.Model != "" {
			model = d.Model
		}
		return t.Provider.Traits(model)
	}
	if t.Provider.ID == "oracle" {
		traits := t.Provider.Traits(model)
		traits.Fields = map[string]string{"oracle_compartment_id": t.Field("oracle_compartment_id"), "oracle_serving_mode": t.Field("oracle_serving_mode")}
		return traits
	}
	if t.Provider.Dialect != Converse {
		return t.Provider.Traits(model)
	}
	traits := t.Provider.Traits(foundationModel(t, ctx, model))
	if traits.Family == familyAnthropic {
		for _, beta := range strings.Split(t.Field("anthropic_beta"), ",") {
			if beta = strings.TrimSpace(beta); beta != "" {
				traits.Betas = append(traits.Betas, beta)
			}
		}
	}
	return traits
}

// Vendors with differing models.
const (
	familyAnthropic = "anthropic"
	familyAmazon    = "amazon"
	familyMistral   = "mistral"
)

// regionGroups come before the ids of models that several regions serve.
var regionGroups = []string{"us.", "eu.", "apac.", "au.", "ca.", "jp.", "global.", "us-gov."}

// bedrockID returns a Bedrock model id without its region prefix. It returns the id in
// the ARN of a foundation model, and "" for other ARNs, which do not contain the model.
func bedrockID(model string) string {
	if strings.HasPrefix(model, "arn:") {
		_, id, found := strings.Cut(model, ":foundation-model/")
		if !found {
			// Bedrock's own profiles are named like the model; an application's profiles are not.
			if _, id, found = strings.Cut(model, ":inference-profile/"); !found {
				return ""
			}
		}
		model = id
	}
	for _, group := range regionGroups {
		if rest, ok := strings.CutPrefix(model, group); ok {
			return rest
		}
	}
	return model
}

// bedrockFamily returns the vendor of a model, "" if its id does not contain it.
func bedrockFamily(id string) string {
	family, _, found := strings.Cut(id, ".")
	if !found {
		return ""
	}
	return family
}

// BedrockInvoke is the dialect of InvokeModel, for models with which Converse cannot hold a
// conversation.
const BedrockInvoke = "bedrock.invoke"

// invoked reports whether a model is called by InvokeModel: Converse takes models of the
// first generation for single texts only, or not at all.
func invoked(id string) bool {
	return strings.HasPrefix(id, "cohere.command-text-") || strings.HasPrefix(id, "cohere.command-light-text-") || strings.HasPrefix(id, "ai21.j2-")
}

// bedrock changes the address of operations that depends on the model.
func bedrock(t *Target, op Operation, a *addressParams, p *place) {
	switch {
	case op == MessagesCountTokens && !strings.HasPrefix(a.model, "arn:"):
		a.model = bedrockID(a.model) // inference profiles cannot count tokens
	case op == Chat && invoked(bedrockID(a.model)):
		p.path = "/model/{model!}/invoke"
		if a.stream && !strings.HasPrefix(bedrockID(a.model), "ai21.") { // Jurassic models do not stream
			p.path = "/model/{model!}/invoke-with-response-stream"
		}
	}
}

// How long the model of an inference profile is cached, and a failed lookup.
const (
	profileLife  = 24 * time.Hour
	profileRetry = 5 * time.Minute
)

// foundationModel resolves model. For an application's inference profile it queries Bedrock. If
// that fails, the profile counts as a model of an unknown vendor.
func foundationModel(t *Target, ctx context.Context, model string) string {
	if !strings.HasPrefix(model, "arn:") || bedrockID(model) != "" || t.Signer == nil {
		return model
	}
	region, err := awsRegion(t)
	if err != nil {
		return model
	}
	key := TokenKey("aws-profile", region, t.Field("aws_access_key_id"), t.Field("aws_role_arn"), t.Credential.Key, t.customHost(), model)
	found, err := t.Signer.Get(ctx, key, func(ctx context.Context, rt http.RoundTripper) (string, time.Time, error) {
		id, err := fetchProfileModel(t, ctx, rt, region, model)
		if err != nil {
			return "", t.Signer.Now().Add(profileRetry), nil
		}
		return id, t.Signer.Now().Add(profileLife), nil
	})
	if err != nil || found == "" {
		return model
	}
	return found
}

// PricedAs returns another name under which a model without a price may have one: that of the
// model of an inference profile, or that of a Vertex model without its publisher. It returns
// other models unchanged.
func (t *Target) PricedAs(ctx context.Context, model string) string {
	switch t.Provider.ID {
	case "bedrock":
		return foundationModel(t, ctx, model)
	case "vertex-ai":
		_, name := vertexModel(model)
		return name
	}
	return model
}

// fetchProfileModel queries Bedrock for the first model of an inference profile.
func fetchProfileModel(t *Target, ctx context.Context, rt http.RoundTripper, region, profile string) (string, error) {
	base := t.customHost()
	switch {
	case base == "":
		base = "https://bedrock." + region + ".amazonaws.com"
	case t.TrustedTransport != nil:
		rt = t.TrustedTransport
	}
	u, err := ExactURL(strings.TrimRight(base, "/") + "/inference-profiles/" + strings.ReplaceAll(url.PathEscape(profile), ":", "%3A"))
	if err != nil {
		return "", err
	}
	req := (&http.Request{Method: http.MethodGet, URL: u, Header: http.Header{"Accept": {"application/json"}}, Body: http.NoBody}).WithContext(ctx)
	if err := t.Authorize(ctx, req, nil); err != nil {
		return "", err
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return "", tokenUnreachable(err, "AWS")
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenResponse))
	if err != nil {
		return "", tokenUnreachable(err, "AWS")
	}
	var answer struct {
		Models []struct {
			ModelARN string `json:"modelArn"`
		} `json:"models"`
	}
	if resp.StatusCode != http.StatusOK || json.Unmarshal(body, &answer) != nil || len(answer.Models) == 0 || bedrockID(answer.Models[0].ModelARN) == "" {
		return "", fault.Newf(fault.ProviderError, "model", "The model of the inference profile could not be determined (status %d)", resp.StatusCode)
	}
	return bedrockID(answer.Models[0].ModelARN), nil
}

// bedrockRow is what models of Bedrock support, found by the beginning of their ids;
// Claude's models are elsewhere.
type bedrockRow struct {
	names    []string
	schema   chat.SchemaSupport
	thinking chat.ThinkingStyle
	cache    bool // takes cache points, of five minutes
	strict   bool // enforces a tool's schema
}

// bedrocks has known models only: a new one of the same maker may support more. Rows are
// tried in order and the first that fits counts.
var bedrocks = []bedrockRow{
	{names: []string{"amazon.nova-2"}, schema: chat.SchemaByTool, thinking: chat.ThinksAdaptively, cache: true},
	{names: []string{"amazon.nova-micro", "amazon.nova-lite", "amazon.nova-pro", "amazon.nova-premier"}, schema: chat.SchemaByTool, thinking: chat.ThinksNever, cache: true},
	{names: []string{"openai.gpt-oss"}, schema: chat.SchemaNative, thinking: chat.ThinksAdaptively, strict: true},
	{names: []string{"qwen.qwen3", "deepseek.v3", "google.gemma-3", "minimax.minimax-m2", "moonshot.kimi-k2", "moonshotai.kimi-k2",
		"nvidia.nemotron-nano", "mistral.magistral-small", "mistral.ministral-3", "mistral.mistral-large-3", "mistral.voxtral"},
		schema: chat.SchemaNative, thinking: chat.ThinksNever, strict: true},
	{names: []string{"mistral.devstral-2", "zai.glm-4.7", "zai.glm-5"}, schema: chat.SchemaNative, thinking: chat.ThinksAdaptively, strict: true},
	{names: []string{"mistral.mistral-large-24"}, schema: chat.SchemaByTool, thinking: chat.ThinksNever},
	{names: []string{"ai21.j2-", "ai21.jamba-", "amazon.titan-t", "cohere.command-", "deepseek.r1", "meta.llama2", "meta.llama3", "meta.llama4",
		"mistral.mistral-7b", "mistral.mixtral-8x", "mistral.mistral-small-24", "mistral.pixtral-large-25", "writer.palmyra-x4", "writer.palmyra-x5"},
		schema: chat.SchemaNone, thinking: chat.ThinksNever},
}

// bedrockWire lists the wire formats of a Bedrock model besides Converse and InvokeModel,
// and the roles that Converse accepts for it.
type bedrockWire struct {
	names []string
	// native are the operations at the runtime's host that take a conversation in its
	// client's own shape.
	native []Operation
	// systemTurns: Converse takes the role system between the turns of the conversation.
	// Other models reject it with "role 'system' is not supported on this model".
	systemTurns bool
}

// bedrockWires contains documented and measured facts. A model without a row gets its
// conversations by Converse, with its system prompts first. The runtime's host serves
// Messages for the newest models of Claude only, and of that API only /v1/messages.
// Responses of gpt-oss, gpt-5.4 and gpt-5.5 are only at Mantle. Chat completions of
// gpt-oss are at the runtime's host too, but return the model's reasoning within its
// text, while Converse separates them. See inference-messages-api,
// inference-responses-api, inference-chat-completions and
// claude-messages-mid-conversation-system in the user guide of Bedrock. The first
// matching row applies.
var bedrockWires = []bedrockWire{
	{[]string{"anthropic.claude-opus-4-8", "anthropic.claude-opus-5", "anthropic.claude-sonnet-5", "anthropic.claude-haiku-5", "anthropic.claude-fable-5"},
		[]Operation{NativeMessages}, true},
	{[]string{"openai.gpt-5.6", "openai.gpt-6", "xai.grok-4.6"}, []Operation{NativeChat, NativeResponses}, false},
}

// wireOf is the row of a model, by its id without the region group; nil if there is none.
func wireOf(id string) *bedrockWire {
	for i := range bedrockWires {
		for _, name := range bedrockWires[i].names {
			if strings.HasPrefix(id, name) && endsWord(name, id) {
				return &bedrockWires[i]
			}
		}
	}
	return nil
}

// bedrockModel sets the traits of a Bedrock model. Bedrock itself rejects unsupported
// parameters of an unknown model, or of an ARN.
func bedrockModel(t *chat.Traits, model string) {
	id := bedrockID(model)
	t.Family = bedrockFamily(id)
	t.MaxToolName = 64 // the bound of Converse itself
	if w := wireOf(id); w != nil {
		t.SystemTurns = w.systemTurns
	}
	if t.Family == familyAnthropic {
		t.Schema, t.Thinking = chat.SchemaNative, chat.ThinksEither
		if i := strings.Index(id, "claude-"); i >= 0 {
			claude(t, id[i:])
		}
		// One generation of models brought answers by a schema, caches for an hour and enforced
		// tool schemas.
		t.NoLongCache, t.NoStrictTools = t.Schema != chat.SchemaNative, t.Schema != chat.SchemaNative
		return
	}
	for i := range bedrocks {
		row := &bedrocks[i]
		if named(row.names, id) {
			t.Schema, t.Thinking = row.schema, row.thinking
			t.NoCacheControl, t.NoLongCache, t.NoStrictTools = !row.cache, true, !row.strict
			return
		}
	}
	// Vendors other than Anthropic and Amazon accept an effort under one name. The vendor of a
	// model given by an ARN is unknown, so the caller's values are forwarded.
	t.Schema, t.Thinking = chat.SchemaNative, chat.ThinksAdaptively
	if t.Family == "" {
		t.Thinking = chat.ThinksEither
	}
}

// named reports whether an id begins with one of names.
func named(names []string, id string) bool {
	for _, name := range names {
		if strings.HasPrefix(id, name) {
			return true
		}
	}
	return false
}
