package provider

import (
	"strings"

	"gateway/shared/chat"
)

// mediaHosts are what Gemini reads by itself: files that were uploaded to it, and
// videos.
var mediaHosts = []string{"generativelanguage.googleapis.com", "youtube.com", "youtu.be"}

// mediaBytes says whether the host reads images and documents from the web. Where
// it does not, or only for some of its models, bytes serve all of them.
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
