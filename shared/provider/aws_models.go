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
	traits.Extended = t.room(model)
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
func bedrock(t *Target, op Operation, a *ask, p *place) {
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
		id, err := askProfile(t, ctx, rt, region, model)
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

// askProfile queries Bedrock for the first model of an inference profile.
func askProfile(t *Target, ctx context.Context, rt http.RoundTripper, region, profile string) (string, error) {
	base := t.customHost()
	switch {
	case base == "":
		base = "https://bedrock." + region + ".amazonaws.com"
	case t.Trusting != nil:
		rt = t.Trusting
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
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenAnswer))
	if err != nil {
		return "", tokenUnreachable(err, "AWS")
	}
	var answer struct {
		Models []struct {
			ModelARN string `json:"modelArn"`
		} `json:"models"`
	}
	if resp.StatusCode != http.StatusOK || json.Unmarshal(body, &answer) != nil || len(answer.Models) == 0 || bedrockID(answer.Models[0].ModelARN) == "" {
		return "", fault.Newf(fault.ProviderError, "model", "The model behind the inference profile could not be learned (status %d)", resp.StatusCode)
	}
	return bedrockID(answer.Models[0].ModelARN), nil
}
