package chosen

import (
	"gateway/shared/fault"
	"gateway/shared/relay/inbound"
	"gateway/shared/route"
)

// fill takes the prompt of the target, where it has one of its own, in place of the
// request's. It gives the saved provider that the body names.
func (ch *Chooser) fill(leaf *route.Leaf) (slug string, err error) {
	ch.Target.To.Prompt = ch.Target.Body.Filled
	if leaf.PromptID == "" || ch.Target.Body.Filled == nil || leaf.PromptID == ch.Target.Body.Filled.Asked {
		return ch.Target.Body.Slug, nil
	}
	by, err := ch.Target.Body.FilledBy(leaf.PromptID)
	if err != nil {
		return "", err
	}
	if by.Compiled.Type != ch.Target.Body.Filled.Compiled.Type {
		return "", fault.Newf(fault.InvalidConfig, "prompt_id", "The prompt of this target is one of type %s, and the request is one of type %s", by.Compiled.Type, ch.Target.Body.Filled.Compiled.Type)
	}
	ch.Target.To.Prompt = by
	slug, ch.Target.To.Model = inbound.ModelOf(by)
	return slug, nil
}
