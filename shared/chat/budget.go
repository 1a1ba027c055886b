package chat

import "strconv"

// EffortOf returns the effort that a budget of thinking tokens stands for.
func EffortOf(budget int64) string {
	switch {
	case budget <= 2048:
		return "low"
	case budget <= 8192:
		return "medium"
	}
	return "high"
}

// FitBudget returns the budget of thinking tokens within least and most that is nearest to
// asked, and reports a change. Clients of other shapes cannot know the bounds of the target, so
// they get what it can give instead of an error.
func FitBudget(asked, least, most int64, loss *Loss) int64 {
	fit := min(max(asked, least), most)
	if fit != asked {
		loss.Add("thinking.budget_tokens", "fitted to "+strconv.FormatInt(fit, 10)+" for this model")
	}
	return fit
}

// efforts are the efforts in their order.
var efforts = [...]string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// EffortRank orders efforts; one that is not known comes last.
func EffortRank(effort string) int {
	for i, w := range efforts {
		if w == effort {
			return i
		}
	}
	return len(efforts)
}
