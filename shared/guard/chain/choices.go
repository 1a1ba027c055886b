package chain

import (
	"context"

	"gateway/shared/guard/content"
	"gateway/shared/guard/judge"
)

// each runs a local check separately on every choice of a response: a text that is missing in
// one choice is not compensated by another, and counts are not added. The result is that of the
// worst choice, with the changes of all. Without choices, it runs the check once.
func (c *check) each(ctx context.Context, s *judge.Subject, choices []content.Choice) judge.Verdict {
	if len(choices) == 0 {
		return c.run(ctx, s)
	}
	var worst judge.Verdict
	var texts []*string
	for i, choice := range choices {
		one := *s
		one.Texts, one.ToolCalls = s.Texts[choice.From:choice.To], choice.ToolCalls
		v := c.run(ctx, &one)
		if v.Texts != nil {
			if texts == nil {
				texts = make([]*string, len(s.Texts))
			}
			copy(texts[choice.From:choice.To], v.Texts)
		}
		if i == 0 || c.severity(&v) > c.severity(&worst) {
			worst = v
		}
	}
	worst.Texts = texts
	return worst
}

// severity orders verdicts: nothing to judge, pass, passing error, failure.
func (c *check) severity(v *judge.Verdict) int {
	switch {
	case v.Err == nil && !v.Pass, v.Err != nil && c.fails(v):
		return 3
	case v.Err != nil && !v.Nothing:
		return 2
	case v.Err == nil:
		return 1
	}
	return 0
}
