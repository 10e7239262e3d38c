// Package manifest turns bytes into objects: files, folders and stdin into the
// kinds of [toolctl.dev/toolctl/api/v1], and objects back into YAML.
//
//	set, err := manifest.Load(ctx, []string{"tools/"}, manifest.Options{})
//	if err != nil {
//		return err // a path does not exist, or ctx ended
//	}
//	for _, f := range set.Violations {
//		fmt.Println(f) // weather.yaml:7:3: spec.descripton: unknown field "descripton"; did you mean "description"?
//	}
//
// # What is read
//
// A path is a file, a folder or "-" for stdin. A folder is read with all its
// subfolders: *.yaml, *.yml, *.json, and *.md with front matter. Files and
// folders whose name starts with "." are passed over, and a symlink to a folder is
// not followed. A document that is no manifest of ours is an error in a file that
// was named, and a warning in a folder, where it is skipped. A file that a
// manifest names as its data (mock_result_file and the like) is not taken for a
// manifest at all.
//
// A file holds one YAML document or many, JSON values one after the other, or a
// List (kind List, apiVersion v1 or toolctl.dev/v1) with objects under items.
//
// # How YAML is read
//
// Scalars follow the core schema of YAML 1.2 (section 10.3.2): y, no, on, 1_000,
// 12:30 and dates are text, as keys and as values; 0777 is 777; 0o17 and 0x1F are
// numbers. Integers keep every digit. .inf and .nan are violations, because JSON has no
// such numbers. Where a YAML 1.1 reader such as kubectl would see something else, a
// warning says so. Keys become text. Merge keys and aliases work; !!binary and
// tags outside the core schema are violations. Depth, size, the number of documents and
// what aliases expand to are bounded.
//
// # Strictness
//
// An unknown field, a duplicate key, a field in the wrong case and a value of the
// wrong type are violations with file, line and column. null stands for an absent
// field. All violations are reported, and an object with violations is returned too when
// its kind and name could be read.
//
// # PromptKit
//
// apiVersion promptkit.altairalabs.ai/<any> loads as well, with kind Tool,
// PromptConfig (read as Prompt) and Scenario; other kinds of that group are skipped
// with a warning. Unknown fields and values of an unexpected type are warnings
// there. metadata.name wins over spec.name. Of a PromptConfig, system_template
// becomes system_prompt in mustache syntax, variables, required_vars and
// optional_vars become arguments, allowed_tools becomes tools, and tool_policy
// becomes policy, in which a limit of 0 means no limit, as PromptKit has it.
//
// # Markdown prompts
//
// A markdown file whose first line is "---" is a Prompt: the front matter holds
// fields of spec, the body is the template. Unknown keys are warnings, because
// agents' files carry many. The name is the field name, else the file's name; what
// is not legal in a name becomes "-". The title is the field title, else the first
// heading when it has at least 10 characters. tools may be one text with commas.
//
// # Files that a manifest names
//
// A relative path is relative to the manifest's file and may not leave the folder
// that was given: for a named file its own folder, for stdin the current one.
// mock_result_file (JSON or YAML, kept as JSON), mock_template_file, media files and
// cassettes are read into Header.Files under the path as written. TLS files and
// working_dir are not read; they may be absolute. A PromptKit path is looked for in
// the manifest's folder, then in each folder above it, and a missing file is a
// warning.
package manifest
