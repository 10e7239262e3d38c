// Package manifest reads files, folders and stdin into objects of the kinds in [toolctl.dev/toolctl/api/v1], and
// writes objects as YAML.
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
// A path is a file, a folder or "-" for stdin. Load reads a folder with all its subfolders: *.yaml, *.yml, *.json,
// and *.md with front matter. It skips files and folders whose name starts with ".", and does not follow symlinks
// to folders. A document that is not a toolctl manifest is an error in a file named by the caller. In a folder it
// is skipped with a warning. A file that a manifest names as its data (mock_result_file and the like) is not read
// as a manifest.
//
// A file holds one or more YAML documents, a sequence of JSON values, or a List (kind List, apiVersion v1 or
// toolctl.dev/v1) with objects under items.
//
// # How YAML is read
//
// Scalars follow the core schema of YAML 1.2 (section 10.3.2): y, no, on, 1_000, 12:30 and dates are text, as keys
// and as values; 0777 is 777; 0o17 and 0x1F are numbers. Integers keep every digit. .inf and .nan are violations,
// because JSON has no such numbers. A warning marks each value that a YAML 1.1 reader such as kubectl would read
// differently. Keys become text. Merge keys and aliases work; !!binary and tags outside the core schema are
// violations. Depth, size, the number of documents and the expansion of aliases are bounded.
//
// # Strictness
//
// An unknown field, a duplicate key, a field in the wrong case and a value of the wrong type are violations with
// file, line and column. null stands for an absent field. All violations are reported. An object with violations is
// also returned if its kind and name could be read.
//
// # PromptKit
//
// apiVersion promptkit.altairalabs.ai/<any> loads as well, with kind Tool, PromptConfig (read as Prompt) and
// Scenario; other kinds of that group are skipped with a warning. Unknown fields and values of an unexpected type
// are warnings there. metadata.name wins over spec.name. In a PromptConfig, system_template becomes system_prompt
// in mustache syntax, variables, required_vars and optional_vars become arguments, allowed_tools becomes tools, and
// tool_policy becomes policy, in which a limit of 0 means no limit, as in PromptKit.
//
// # Markdown prompts
//
// A markdown file whose first line is "---" is a Prompt: the front matter holds fields of spec, and the body is the
// template. Unknown keys are warnings, because agent files contain many. The name is the field name, or by default
// the name of the file, with "-" in place of illegal characters. The title is the field title, or by default the
// first heading if it has at least 10 characters. tools may be one text with commas.
//
// # Files that a manifest names
//
// A relative path is relative to the manifest's file and must stay inside the given folder: the file's own folder
// for a named file, the current folder for stdin. mock_result_file (JSON or YAML, kept as JSON),
// mock_template_file, media files and cassettes are read into Header.Files under the path as written. TLS files and
// working_dir are not read; they may be absolute. A PromptKit path is looked up in the manifest's folder, then in
// each parent folder, and a missing file is a warning.
package manifest
