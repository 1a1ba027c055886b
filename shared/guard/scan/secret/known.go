package secret

import "strings"

// key is the format of a service's keys: a prefix, and the number and kind of characters that
// follow.
type key struct {
	prefix, label string
	least, most   int
	chars         string // empty for letters, digits, _ and -
}

const (
	plain = "alphanumeric"
	caps  = "capitals"
	hexed = "hex"
	dots  = "dots" // and dots
)

// keys are the formats, grouped by their first two bytes.
var keys = []key{
	{"AKIA", "AWS_ACCESS_KEY", 16, 16, caps}, {"ASIA", "AWS_ACCESS_KEY", 16, 16, caps}, {"ABIA", "AWS_ACCESS_KEY", 16, 16, caps},
	{"ABSK", "AWS_BEDROCK_KEY", 60, 200, "base64"}, {"bedrock-api-key-", "AWS_BEDROCK_KEY", 60, 2000, "base64"},
	{"ghp_", "GITHUB_TOKEN", 36, 255, plain}, {"gho_", "GITHUB_TOKEN", 36, 255, plain}, {"ghu_", "GITHUB_TOKEN", 36, 255, plain}, {"ghs_", "GITHUB_TOKEN", 36, 255, plain}, {"ghr_", "GITHUB_TOKEN", 36, 255, plain},
	{"github_pat_", "GITHUB_TOKEN", 36, 255, ""}, {"glpat-", "GITLAB_TOKEN", 20, 64, ""}, {"glptt-", "GITLAB_TOKEN", 20, 64, ""}, {"gldt-", "GITLAB_TOKEN", 20, 64, ""},
	{"sk-ant-", "ANTHROPIC_KEY", 32, 200, ""}, {"sk-proj-", "OPENAI_KEY", 32, 250, ""}, {"sk-svcacct-", "OPENAI_KEY", 32, 250, ""}, {"sk-or-v1-", "OPENROUTER_KEY", 32, 128, hexed}, {"sk-", "OPENAI_KEY", 32, 250, ""},
	{"AIza", "GOOGLE_KEY", 35, 35, ""}, {"ya29.", "GOOGLE_TOKEN", 32, 2000, ""}, {"GOCSPX-", "GOOGLE_SECRET", 24, 40, ""},
	{"gsk_", "GROQ_KEY", 40, 80, plain}, {"xai-", "XAI_KEY", 40, 120, plain}, {"pplx-", "PERPLEXITY_KEY", 32, 80, plain}, {"hf_", "HUGGINGFACE_TOKEN", 30, 64, plain}, {"r8_", "REPLICATE_TOKEN", 30, 64, plain},
	{"nvapi-", "NVIDIA_KEY", 40, 128, ""}, {"tvly-", "TAVILY_KEY", 24, 80, ""}, {"fw_", "FIREWORKS_KEY", 22, 48, plain}, {"csk-", "CEREBRAS_KEY", 40, 80, plain}, {"tgp_v1_", "TOGETHER_KEY", 32, 80, ""},
	{"xoxb-", "SLACK_TOKEN", 24, 255, ""}, {"xoxp-", "SLACK_TOKEN", 24, 255, ""}, {"xoxa-", "SLACK_TOKEN", 24, 255, ""}, {"xoxr-", "SLACK_TOKEN", 24, 255, ""}, {"xoxs-", "SLACK_TOKEN", 24, 255, ""}, {"xapp-", "SLACK_TOKEN", 24, 255, ""},
	{"hooks.slack.com/services/", "SLACK_WEBHOOK", 40, 60, "base64"}, {"discord.com/api/webhooks/", "DISCORD_WEBHOOK", 60, 120, "base64"},
	{"sk_live_", "STRIPE_KEY", 24, 247, plain}, {"rk_live_", "STRIPE_KEY", 24, 247, plain}, {"sk_test_", "STRIPE_KEY", 24, 247, plain}, {"whsec_", "WEBHOOK_SECRET", 24, 88, "base64"},
	{"SG.", "SENDGRID_KEY", 60, 80, dots}, {"key-", "MAILGUN_KEY", 32, 32, hexed}, {"npm_", "NPM_TOKEN", 36, 36, plain}, {"pypi-AgE", "PYPI_TOKEN", 60, 300, ""}, {"rubygems_", "RUBYGEMS_KEY", 48, 48, hexed},
	{"dop_v1_", "DIGITALOCEAN_TOKEN", 64, 64, hexed}, {"doo_v1_", "DIGITALOCEAN_TOKEN", 64, 64, hexed}, {"shpat_", "SHOPIFY_TOKEN", 32, 32, hexed}, {"shpss_", "SHOPIFY_TOKEN", 32, 32, hexed}, {"shpca_", "SHOPIFY_TOKEN", 32, 32, hexed},
	{"sq0atp-", "SQUARE_TOKEN", 22, 60, ""}, {"sq0csp-", "SQUARE_SECRET", 40, 60, ""}, {"EAAA", "SQUARE_TOKEN", 56, 64, ""}, {"dckr_pat_", "DOCKER_TOKEN", 24, 40, ""}, {"PMAK-", "POSTMAN_KEY", 50, 64, ""},
	{"lin_api_", "LINEAR_KEY", 32, 48, plain}, {"ntn_", "NOTION_TOKEN", 40, 60, plain}, {"figd_", "FIGMA_TOKEN", 36, 60, ""}, {"dapi", "DATABRICKS_TOKEN", 32, 34, hexed}, {"hvs.", "VAULT_TOKEN", 24, 120, ""}, {"hvb.", "VAULT_TOKEN", 24, 300, ""},
	{"AGE-SECRET-KEY-1", "AGE_KEY", 58, 58, caps}, {"glsa_", "GRAFANA_TOKEN", 40, 50, ""}, {"NRAK-", "NEWRELIC_KEY", 27, 27, caps}, {"pat-na1-", "HUBSPOT_TOKEN", 36, 36, ""}, {"tskey-", "TAILSCALE_KEY", 24, 80, ""},
	{"PRIVATE-TOKEN", "GITLAB_TOKEN", 21, 64, ""}, {"sbp_", "SUPABASE_TOKEN", 40, 40, hexed}, {"sntrys_", "SENTRY_TOKEN", 60, 300, "base64"}, {"atlasv1.", "TERRAFORM_TOKEN", 60, 70, ""}, {"lsv2_pt_", "LANGSMITH_KEY", 32, 64, ""}, {"phc_", "POSTHOG_KEY", 40, 50, plain},
	{"ATATT3", "ATLASSIAN_TOKEN", 100, 220, ""}, {"1//0", "GOOGLE_TOKEN", 60, 120, ""},
}

// byStart finds the keys by their first two bytes: groups[byStart[...]].
var byStart, groups = func() (by [1 << 14]uint8, groups [][]uint8) {
	groups = append(groups, nil)
	for i, k := range keys {
		at := start(k.prefix)
		if by[at] == 0 {
			by[at] = uint8(len(groups))
			groups = append(groups, nil)
		}
		groups[by[at]] = append(groups[by[at]], uint8(i))
	}
	return by, groups
}()

func start(s string) int { return int(s[0]&0x7f)<<7 | int(s[1]&0x7f) }

// findKnown returns the label and the length of the key at the start of a run of letters, digits
// and marks, or 0.
func findKnown(word string) (label string, size int) {
	for _, i := range groups[byStart[start(word)]] {
		k := &keys[i]
		if len(word) < len(k.prefix)+k.least || !strings.HasPrefix(word, k.prefix) {
			continue
		}
		n := len(k.prefix)
		for n < len(word) && fits(word[n], k.chars) {
			n++
		}
		if body := n - len(k.prefix); body < k.least || body > k.most || example(word[:n]) {
			continue
		}
		if k.prefix == "sk-" && (strings.Count(word[:n], "-") > 6 || strings.HasPrefix(word, "sk-ant-") || strings.HasPrefix(word, "sk-proj-") || strings.HasPrefix(word, "sk-svcacct-") || strings.HasPrefix(word, "sk-or-")) {
			continue // words with dashes, or a key of another format that is too short
		}
		return k.label, n
	}
	if word[0] == 'e' && word[1] == 'y' {
		return "JWT", token(word)
	}
	return "", 0
}

func fits(c byte, chars string) bool {
	k := class[c]
	switch chars {
	case plain:
		return k&(small|large|figure) != 0
	case caps:
		return k&(large|figure) != 0
	case hexed:
		return k&figure != 0 || c >= 'a' && c <= 'f' || c == '-'
	case dots:
		return k&(small|large|figure) != 0 || c == '_' || c == '-' || c == '.'
	case "base64":
		return k&(small|large|figure) != 0 || c == '_' || c == '-' || c == '+' || c == '/'
	}
	return k&(small|large|figure) != 0 || c == '_' || c == '-'
}

// example reports whether a key is an example from documentation.
func example(s string) bool {
	if strings.Contains(s, "EXAMPLE") || strings.Contains(s, "example") || strings.Contains(strings.ToLower(s), "xxxx") {
		return true
	}
	tail := s[len(s)-8:]
	return strings.Count(tail, tail[:1]) == len(tail)
}

// token returns the length of a JSON Web Token at the start of s, signed or not, or 0.
func token(s string) int {
	if !strings.HasPrefix(s, "eyJ") {
		return 0
	}
	parts, size, part := 0, 0, 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && (class[s[i]]&(small|large|figure) != 0 || s[i] == '_' || s[i] == '-') {
			part++
			continue
		}
		if part < 10 {
			break
		}
		parts, size, part = parts+1, i, 0
		if parts == 3 || i < len(s) && s[i] != '.' {
			break
		}
	}
	if parts < 3 {
		return 0
	}
	return size
}
