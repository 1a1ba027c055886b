package anthropic

import "strings"

// clientNames are the client's names of members that encoders name otherwise.
var clientNames = map[string]string{
	"user": "metadata.user_id", "stop": "stop_sequences", "parallel_tool_calls": "tool_choice.disable_parallel_tool_use",
	"reasoning_effort": "output_config.effort", "response_format": "output_config.format",
	"response_format.json_schema.schema": "output_config.format.schema",
}

// ownOnly marks, in Request.Extra, a field unknown to this dialect with a name that
// encoders use for something else.
const ownOnly = "messages."

// extraName is the name in Request.Extra of the member key.
func extraName(key []byte) string {
	if _, taken := clientNames[string(key)]; taken {
		return ownOnly + string(key)
	}
	return string(key)
}

// ClientPath implements chat.Named: tools[0].function.parameters is
// tools[0].input_schema, messages[1].tool_calls[2] is messages[1].content[2].
func (Messages) ClientPath(path string) string {
	if own, ok := clientNames[path]; ok {
		return own
	}
	if unknown, ok := strings.CutPrefix(path, ownOnly); ok {
		return unknown
	}
	switch {
	case strings.HasPrefix(path, "tools["):
		path = strings.Replace(path, ".function.parameters", ".input_schema", 1)
		return strings.Replace(path, "].function.", "].", 1)
	case strings.HasPrefix(path, "messages["):
		path = strings.Replace(path, ".tool_calls[", ".content[", 1)
		path = strings.Replace(path, ".file.filename", ".title", 1)
		return strings.Replace(path, ".function.arguments", ".input", 1)
	}
	return path
}
