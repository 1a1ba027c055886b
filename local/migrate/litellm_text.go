package migrate

import (
	"encoding/json"
	"os"
	"strings"

	"gateway/local/document"
)

// jsonText is a value of the source as JSON.
func jsonText(n *document.Node) string {
	raw, err := json.Marshal(n.Value())
	if err != nil {
		return ""
	}
	return string(raw)
}

// maxCredentialFile bounds the file of a service account.
const maxCredentialFile = 64 << 10

// fileText returns the content of the file that a credential names, or the credential itself
// if it is no file.
func fileText(l *importer, text string) string {
	name := text
	if variable, ok := strings.CutPrefix(text, environPrefix); ok {
		value, set := l.env(variable)
		if !set {
			return text
		}
		name = value
	}
	if strings.HasPrefix(strings.TrimSpace(name), "{") {
		return text
	}
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxCredentialFile {
		return text
	}
	raw, err := os.ReadFile(name)
	if err != nil || !json.Valid(raw) {
		return text
	}
	return string(raw)
}
