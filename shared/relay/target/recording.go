package target

import (
	"gateway/shared/fault"
	"gateway/shared/provider"
)

// needsRecording rejects a form without a file if the target does not accept a URL of a
// recording instead.
func needsRecording(tg *Target, op provider.Operation) error {
	if op != provider.AudioTranscription && op != provider.AudioTranslation || tg.Body.Form == nil || !tg.Body.Form.Complete() || tg.Body.Form.HasFile("file") || tg.To.Target.TakesRecordingURL() {
		return nil
	}
	return fault.Newf(fault.InvalidRequest, "file", "file is required: a file; %s takes no url in its place", tg.To.Target.Provider.ID)
}
