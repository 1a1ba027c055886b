package hosts

import "gateway/shared/chat"

// Reasoner is a host that wants the reasoning of earlier turns back in the assistant's
// messages.
type Reasoner struct {
	Host, Field   string // id of the provider, field of the message
	PreserveField string // member of the request without which the host drops what it gets back; "": none
	Required      bool   // the host rejects a turn of a tool loop without it
}

// Reasoners are the hosts that take reasoning back. Others get none.
var Reasoners = []Reasoner{
	{Host: "deepseek", Field: "reasoning_content", Required: true},                      // api-docs.deepseek.com/guides/thinking_mode (tool calls), 2026-11-29
	{Host: "moonshot", Field: "reasoning_content", Required: true},                      // platform.kimi.ai/docs/guide/use-kimi-k2-thinking-model, 2026-11-29
	{Host: "z-ai", Field: "reasoning_content"},                                          // docs.z.ai/guides/capabilities/thinking-mode (preserved thinking), 2026-11-29
	{Host: "zhipu", Field: "reasoning_content"},                                         // docs.bigmodel.cn (thinking mode); openyak/openyak#128, 2026-11-29
	{Host: "dashscope", Field: "reasoning_content", PreserveField: "preserve_thinking"}, // vercel/ai#20871 (function calling); QwenLM/qwen-code#5637, 2026-11-29
	{Host: "siliconflow", Field: "reasoning_content"},                                   // openyak/openyak#128 (accepted), 2026-11-29
	{Host: "openrouter", Field: "reasoning"},                                            // openrouter.ai/docs/use-cases/reasoning-tokens (preserving reasoning blocks), 2026-11-29
	{Host: "vllm", Field: "reasoning"},                                                  // vllm-project/vllm#38488 (input reads reasoning); cloudflare/ai, workers-ai-provider 3.1.5, 2026-11-29
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

// Signature returns the signature with which clients receive the host's reasoning, "" for nil.
// Clients discard reasoning without one. It only identifies the host: the text itself is
// beside it, and the client could send any other text to the host as well.
func (r *Reasoner) Signature() string {
	if r == nil {
		return ""
	}
	return chat.MarkSigned(reasonedBy, r.Host)
}

// Accepts reports whether the host takes a part of reasoning back: one that it gave, or one
// without any signature.
func (r *Reasoner) Accepts(p *chat.Part) bool {
	if r == nil || p.Kind != chat.Reasoned || p.Text == "" {
		return false
	}
	by, host, marked := chat.SignedBy(p.Signature)
	return p.Signature == "" || marked && by == reasonedBy && host == r.Host
}
