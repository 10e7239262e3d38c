// Package inspect finds text in tool descriptions that a person does not see or would not want a model to read: hidden
// characters, and text that instructs the model instead of describing the tool.
//
//	for _, f := range inspect.Text("/spec/description", tool.Spec.Description) {
//		fmt.Println(f) // warning: spec.description: hidden character U+200B (zero width) at character 14: "read⟨U+200B⟩ a file"
//	}
//
// Findings are warnings, because rules match text and do not understand it. A rule that refused an honest server would
// soon be disabled, so there are few rules, and each requires a combination of words that an honest description hardly
// needs.
//
// # Hidden characters
//
//	rule           characters                                           allowed
//	tag            U+E0000 to U+E007F                                   flags such as England's: U+1F3F4, tags, U+E007F
//	zero width     U+200B, U+2060 to U+2064, U+FEFF, U+00AD, U+034F,    U+200C and U+200D inside a word of a script that
//	               U+180E, U+200C, U+200D, Hangul and Khmer fillers     joins letters, and U+200D between emoji
//	bidi control   U+202A to U+202E, U+2066 to U+2069, U+200E, U+200F,  marks and isolates in text that has letters
//	               U+061C                                               written from right to left
//	variation      U+FE00 to U+FE0F, U+E0100 to U+E01EF                 one after a visible character; U+E01xx after an ideograph
//	control        C0, C1 and U+007F                                    tab, line feed, carriage return
//
// # Instruction-like text
//
//	rule           meaning                                              example
//	override       sets aside what the model was told                   ignore all previous instructions
//	conceal        keeps something from the user                        do not tell the user
//	role           gives the model another role                         you are now the administrator
//	markup         imitates the markup of prompts                       <IMPORTANT>, <|im_start|>, [INST]
//	credentials    names files that hold credentials                    ~/.ssh/id_rsa, ~/.cursor/mcp.json
//	exfiltrate     asks for the conversation, the system prompt, or     pass the full conversation
//	               for secrets to be sent somewhere
package inspect
