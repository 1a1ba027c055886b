package hosts

import "gateway/shared/chat"

// Reasoner is a host that wants the reasoning of earlier turns back in the assistant's messages.
// Most of them refuse a turn of a tool loop without it.
type Reasoner struct {
	Host, Field  string // id of the provider, member of the message
	Source, Date string
}

// Reasoners are the hosts that take reasoning back. Others get none.
var Reasoners = []Reasoner{
	{"deepseek", "reasoning_content", "api-docs.deepseek.com/guides/thinking_mode (tool calls)", "2026-11-29"},
	{"moonshot", "reasoning_content", "platform.kimi.ai/docs/guide/use-kimi-k2-thinking-model", "2026-11-29"},
	{"z-ai", "reasoning_content", "docs.z.ai/guides/capabilities/thinking-mode (preserved thinking)", "2026-11-29"},
	{"zhipu", "reasoning_content", "docs.bigmodel.cn (thinking mode); openyak/openyak#128", "2026-11-29"},
	{"dashscope", "reasoning_content", "help.aliyun.com/zh/model-studio/deep-thinking; openyak/openyak#128", "2026-11-29"},
	{"siliconflow", "reasoning_content", "docs.siliconflow.cn (reasoning); openyak/openyak#128", "2026-11-29"},
	{"openrouter", "reasoning", "openrouter.ai/docs/use-cases/reasoning-tokens (preserving reasoning)", "2026-11-29"},
	{"vllm", "reasoning", "docs.vllm.ai/en/latest/features/reasoning_outputs", "2026-11-29"},
}

// ReasonerOf returns the row of a provider, nil if there is none.
func ReasonerOf(provider string) *Reasoner {
	for i := range Reasoners {
		if r := &Reasoners[i]; r.Host == provider {
			return r
		}
	}
	return nil
}

// reasonedBy begins the mark of reasoning that a host of this shape gave.
const reasonedBy = "openai.chat"

// Mark returns the signature under which clients get the host's reasoning, "" for nil. Clients
// throw away reasoning without one. It only says whose the reasoning is: the text itself is
// beside it, and the client could send any other text to the host as well.
func (r *Reasoner) Mark() string {
	if r == nil {
		return ""
	}
	return chat.MarkSigned(reasonedBy, r.Host)
}

// Takes reports whether the host takes a part of reasoning back: one that it gave, or one
// without any signature.
func (r *Reasoner) Takes(p *chat.Part) bool {
	if r == nil || p.Kind != chat.Reasoned || p.Text == "" {
		return false
	}
	by, host, marked := chat.SignedBy(p.Signature)
	return p.Signature == "" || marked && by == reasonedBy && host == r.Host
}
