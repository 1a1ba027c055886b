package chat

import "strconv"

// EffortOf returns the effort that corresponds to a budget of thinking tokens.
func EffortOf(budget int64) string {
	switch {
	case budget <= 2048:
		return "low"
	case budget <= 8192:
		return "medium"
	}
	return "high"
}

// FitBudget returns the budget of thinking tokens between least and most that is nearest to
// asked, and reports a change. Clients of other formats cannot know the limits of the target,
// so they get the nearest value instead of an error.
func FitBudget(asked, least, most int64, loss *Loss) int64 {
	fit := min(max(asked, least), most)
	if fit != asked {
		loss.Add("thinking.budget_tokens", "fitted to "+strconv.FormatInt(fit, 10)+" for this model")
	}
	return fit
}

// efforts are ordered from lowest to highest.
var efforts = [...]string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// EffortRank returns the position of an effort; unknown efforts come last.
func EffortRank(effort string) int {
	for i, w := range efforts {
		if w == effort {
			return i
		}
	}
	return len(efforts)
}
