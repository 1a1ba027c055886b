package claude

import "gateway/shared/chat"

// FitBudget returns a budget of thinking tokens that Claude accepts: at least MinBudget
// and below maxTokens, which leaves tokens for the response. It reports a change. It
// returns 0 if maxTokens is too small for thinking.
func FitBudget(asked, maxTokens int64, loss *chat.Loss) int64 {
	most := maxTokens - 1
	if asked >= maxTokens {
		most = max(maxTokens/2, min(MinBudget, maxTokens-1))
	}
	if most < MinBudget {
		loss.Add("thinking", "max_tokens leaves no room for it")
		return 0
	}
	return chat.FitBudget(asked, MinBudget, most, loss)
}
