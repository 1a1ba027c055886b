package mockprovider

import "strings"

const breakpoint = `"prompt_cache_breakpoint":{"mode":"explicit"}`

// checkBreakpoints reads the ends of prefixes that the parts of a body in OpenAI's formats
// mark: the models from 5.6 on accept them, four in a request.
func checkBreakpoints(x *exchange, model string) *apiError {
	body := string(x.body)
	n := strings.Count(body, `"prompt_cache_breakpoint"`)
	switch {
	case n == 0:
		return nil
	case !strings.Contains(model, "gpt-5.6") && !strings.Contains(model, "gpt-6") || strings.Contains(model, "-no-breakpoints"):
		return badRequest("prompt_cache_breakpoint", "unknown_parameter", "Unknown parameter: 'prompt_cache_breakpoint'.")
	case strings.Count(body, breakpoint) != n:
		return badRequest("prompt_cache_breakpoint", "invalid_value", "Invalid value: 'prompt_cache_breakpoint.mode' must be 'explicit'.")
	case n > 4:
		return badRequest("prompt_cache_breakpoint", "invalid_value", "A request can write up to four breakpoints.")
	}
	return nil
}
