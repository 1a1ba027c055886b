package reference

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// wholeItems has each type of item of the Responses API (openai-go 3.95, ResponseInputItemUnion)
// with its payload.
var wholeItems = map[string]string{
	"message":                 `"role":"assistant","content":[{"type":"output_text","text":"x","annotations":[]}]`,
	"reasoning":               `"summary":[],"encrypted_content":"abc"`,
	"compaction":              `"encrypted_content":"abc"`,
	"configuration_update":    `"reasoning":{"effort":"low"}`,
	"additional_tools":        `"role":"developer","tools":[]`,
	"function_call":           `"call_id":"c","name":"f","arguments":""`,
	"function_call_output":    `"call_id":"c","output":""`,
	"custom_tool_call":        `"call_id":"c","name":"f","input":""`,
	"custom_tool_call_output": `"call_id":"c","output":""`,
	"file_search_call":        `"queries":["q"],"results":null`,
	"web_search_call":         `"action":{"type":"search","query":"q"}`,
	"tool_search_call":        `"arguments":{}`,
	"tool_search_output":      `"tools":[]`,
	"computer_call":           `"call_id":"c","actions":[]`,
	"computer_call_output":    `"call_id":"c","output":{"type":"computer_screenshot"}`,
	"image_generation_call":   `"result":"aGk="`,
	"code_interpreter_call":   `"code":"1","container_id":"cntr_1"`,
	"local_shell_call":        `"call_id":"c","action":{"type":"exec"}`,
	"local_shell_call_output": `"output":""`,
	"shell_call":              `"call_id":"c","action":{"commands":[]}`,
	"shell_call_output":       `"call_id":"c","output":[]`,
	"apply_patch_call":        `"call_id":"c","operation":{"type":"delete_file","path":"p"}`,
	"apply_patch_call_output": `"call_id":"c","status":"completed"`,
	"mcp_list_tools":          `"server_label":"s","tools":[]`,
	"mcp_call":                `"server_label":"s","name":"f","arguments":"{}"`,
	"mcp_approval_request":    `"server_label":"s","name":"f","arguments":"{}"`,
	"mcp_approval_response":   `"approval_request_id":"mcpr_2","approve":true`,
	"program":                 `"call_id":"c","code":"1","fingerprint":"f"`,
	"program_output":          `"call_id":"c","result":""`,
	"some_later_type":         `"text":"x"`,
}

// Items without the payload of their type are references, whatever bookkeeping they have; items
// with it are not. Types that have no payload always are references.
func TestItemsWithoutPayloadAreReferences(t *testing.T) {
	t.Parallel()
	for kind := range payloads {
		if _, ok := wholeItems[kind]; !ok && kind != "" && kind != "item_reference" && kind != "compaction_trigger" {
			t.Errorf("no case for %s", kind)
		}
	}
	check := func(item string, reference bool) {
		t.Helper()
		for _, list := range []string{"input", "items"} {
			got := Items([]byte(fmt.Sprintf(`{"model":"m",%q:["x",{"role":"user","content":"x"},%s]}`, list, item)))
			if len(got) != 1 || got[0].Field != list+"[2]" || got[0].ID != "it_1" || got[0].Reference != reference {
				t.Errorf("%s: %+v, want reference %v", item, got, reference)
			}
		}
	}
	for kind, payload := range wholeItems {
		check(fmt.Sprintf(`{"type":%q,"id":"it_1",%s}`, kind, payload), false)
		check(fmt.Sprintf(`{%s,"id":"it_1","status":"completed","type":%q}`, payload, kind), false)
		check(fmt.Sprintf(`{"type":%q,"id":"it_1"}`, kind), true)
		check(fmt.Sprintf(`{"id":"it_1","status":"completed","type":%q,"created_by":"x"}`, kind), true)
		for name := range strings.SplitSeq("role content summary call_id name arguments output result encrypted_content code action server_label", " ") {
			check(fmt.Sprintf(`{"type":%q,"id":"it_1",%q:null}`, kind, name), true)
		}
		check(fmt.Sprintf(`{"type":%q,"type":"item_reference","id":"it_1",%s}`, kind, payload), true)
	}
	for _, item := range []string{
		`{"type":"item_reference","id":"it_1"}`,
		`{"type":"item\u005freference","\u0069d":"it_1"}`,
		`{"type":"item_reference","id":"it_1","role":"user","content":"x","output":"x"}`,
		`{"Type":"item_reference","ID":"it_1"}`,
		`{"id":"it_1"}`,
		`{"type":null,"id":"it_1","role":null}`,
		`{"id":"it_1","role":"assistant"}`,
		`{"type":"compaction_trigger","id":"it_1"}`,
		`{"type":"reasoning","id":"it_1","summary":[{"type":"summary_text","text":"x"}],"encrypted_content":"","content":[]}`,
		`{"type":"image_generation_call","id":"it_1","status":"completed","result":""}`,
		`{"type":"mcp_call","id":"it_1","server_label":"s","output":"x"}`,
		`{"type":"file_search_call","id":"it_1","results":[]}`,
	} {
		check(item, true)
	}
	check(`{"id":"it_1","role":"assistant","content":"x"}`, false)
	check(`{"type":"reasoning","id":"it_1","summary":[],"content":[{"type":"reasoning_text","text":"x"}]}`, false)
	for _, body := range []string{
		`{"input":"item_reference","id":"x"}`, `{"input":{"type":"item_reference","id":"x"}}`, `{"input":[1,"id",null,[{"id":"x"}]]}`,
		`[{"id":"x"}]`, `{"input":[{"id":`, `{"messages":[{"id":"x"}]}`, `{"input":[{"type":"local_shell_call_output","id":"call_1","output":"x"}]}`,
	} {
		if got := Items([]byte(body)); len(got) > 0 {
			t.Errorf("%s: %+v", body, got)
		}
	}
}

func TestItemsOfAnswersAreFound(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`{"id":"resp_1","object":"response","output":[{"id":"rs_1","type":"reasoning"},{"type":"message","id":"msg_1","content":[{"id":"x"}]}]}`: "rs_1 msg_1",
		`{"object":"list","data":[{"id":"msg_1","type":"message"},{"type":"x"}]}`:                                                                "msg_1",
		`{"type":"response.output_item.added","item":{"id":"fc_1","type":"function_call"}}`:                                                      "fc_1",
		`{"type":"response.completed","response":{"id":"resp_1","output":[{"id":"rs_1"}]}}`:                                                      "rs_1",
		`{"type":"response.output_text.delta","item_id":"msg_1","delta":"{\"item\":{\"id\":\"x\"}}"}`:                                            "",
		`[{"id":"x"}]`: "",
		`x`:            "",
	} {
		if got := strings.Join(slices.Compact(CreatedItems([]byte(answer))), " "); got != want {
			t.Errorf("%s: %s, want %s", answer, got, want)
		}
	}
}
