package hosts

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"unicode/utf8"

	"gateway/shared/chat"
)

// Length bounds a field of a request, in characters.
type Length struct {
	Host, Field  string // id of the provider, user or tool_call_id
	Least, Most  int
	Source, Date string
}

// Lengths are the bounds of hosts. A field without a row has none.
var Lengths = []Length{
	{"openai", "user", 0, 64, "looplj/axonhub#1669 (string_above_max_length)", "2026-11-28"},
	{"azure-openai", "user", 0, 64, "looplj/axonhub#1669 (string_above_max_length)", "2026-11-28"},
	{"openrouter", "user", 0, 128, "ujisati/claude-code-provider-proxy#11", "2026-11-29"},
	{"zhipu", "user", 6, 128, "docs.bigmodel.cn (user_id)", "2026-11-28"},
	{"z-ai", "user", 6, 128, "docs.z.ai/api-reference/llm/chat-completion (user_id)", "2026-11-28"},
	{"byteplus", "user", 6, 128, "docs.byteplus.com/en/docs/ModelArk", "2026-11-28"},
	{"openai", "tool_call_id", 0, 64, "orchidfiles/ungate#26; AnswerDotAI/fastllm#45", "2026-11-28"},
	{"azure-openai", "tool_call_id", 0, 40, "BerriAI/litellm#11392; Azure/azure-dev#7324 (64 at /responses: openai/codex#14355)", "2026-11-29"},
}

// lengthOf returns the row of a field, nil if there is none.
func lengthOf(provider, field string) *Length {
	for i := range Lengths {
		if l := &Lengths[i]; l.Host == provider && l.Field == field {
			return l
		}
	}
	return nil
}

// User returns the id of the end user as a provider takes it: a stable hash if its length is out
// of bounds, which is reported.
func User(provider, user string, loss *chat.Loss) string {
	l, n := lengthOf(provider, "user"), utf8.RuneCountInString(user)
	if l == nil || n >= l.Least && n <= l.Most {
		return user
	}
	loss.Add("user", "given as a hash: the provider takes "+strconv.Itoa(l.Least)+" to "+strconv.Itoa(l.Most)+" characters")
	sum := sha256.Sum256([]byte(user))
	return hex.EncodeToString(sum[:16])
}

// CallID returns the id of a tool call in the form that a provider accepts. A long one is
// always shortened in the same way, so that calls and results still match; responses do not
// repeat ids, and the client uses its own.
func CallID(provider, id string) string {
	if l := lengthOf(provider, "tool_call_id"); l != nil && len(id) > l.Most {
		return chat.LegalName(id, l.Most)
	}
	return id
}
