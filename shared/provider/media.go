package provider

import (
	"strings"

	"gateway/shared/chat"
)

// mediaHosts are hosts from which Gemini reads on its own: files that were uploaded to
// it, and videos.
var mediaHosts = []string{"generativelanguage.googleapis.com", "youtube.com", "youtu.be"}

// mediaBytes reports whether the gateway must send images and documents as bytes. That is
// so if the host does not read them from the web, or does so only for some of its models.
func (p *Provider) mediaBytes(t *chat.Traits, model string) {
	switch p.ID {
	case "bedrock", "cohere", "oracle", "ollama":
		t.NeedsMediaBytes = true
	case "google":
		t.NeedsMediaBytes, t.MediaHosts = true, mediaHosts
	case "vertex-ai":
		publisher, _ := vertexModel(model)
		t.NeedsMediaBytes = publisher == "anthropic" || strings.HasPrefix(model, "claude-")
	}
}
