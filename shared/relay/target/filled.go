package target

import (
	"gateway/shared/fault"
	"gateway/shared/relay/body"
	"gateway/shared/route"
)

// fill renders the target's own prompt, if it has one, instead of the request's. It returns the
// saved provider that the body names.
func fill(tg *Target, leaf *route.Leaf) (slug string, err error) {
	tg.To.Prompt = tg.Body.Filled
	if leaf.PromptID == "" || tg.Body.Filled == nil || leaf.PromptID == tg.Body.Filled.RequestedName {
		return tg.Body.Slug, nil
	}
	by, err := tg.Body.FilledBy(leaf.PromptID)
	if err != nil {
		return "", err
	}
	if by.Compiled.Type != tg.Body.Filled.Compiled.Type {
		return "", fault.Newf(fault.InvalidConfig, "prompt_id", "The prompt of this target is one of type %s, and the request is one of type %s", by.Compiled.Type, tg.Body.Filled.Compiled.Type)
	}
	tg.To.Prompt = by
	slug, tg.To.Model = body.ModelOf(by)
	return slug, nil
}
