/** What is in an environment, read from its definition. */

export interface Contents {
  python: string;
  conda: string[];
  pip: string[];
  variables: string[];
  image: string;
  isUserManaged: boolean;
}

/** The packages and settings in the definition of an environment, whatever else it has. */
export function readContents(definition: Readonly<Record<string, unknown>>): Contents {
  const python = asObject(definition["python"]);
  const recipe = asObject(python["condaDependencies"] ?? python["conda_dependencies"]);
  const dependencies = Array.isArray(recipe["dependencies"]) ? recipe["dependencies"] : [];
  const conda = dependencies.filter((each): each is string => typeof each === "string");
  const pip = dependencies.flatMap((each) => {
    const list = asObject(each)["pip"];
    return Array.isArray(list) ? list.map(String) : [];
  });
  const release = conda.find((each) => /^python\s*[=<>]/.test(each));
  const docker = asObject(definition["docker"]);
  return {
    python: release?.replace(/^python\s*=*/, "") ?? "",
    conda: conda.filter((each) => each !== release && each !== "pip"),
    pip,
    variables: Object.keys(asObject(definition["environmentVariables"] ?? definition["environment_variables"])),
    image: String(docker["baseImage"] ?? docker["base_image"] ?? ""),
    isUserManaged: (python["userManagedDependencies"] ?? python["user_managed_dependencies"]) === true,
  };
}

/** Builds whose name, packages or users have every word. */
export function searchBuilds<T extends { name: string; packages: readonly string[]; users: readonly string[] }>(builds: readonly T[], text: string): T[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return builds.filter((build) => {
    const all = [build.name, ...build.packages, ...build.users].join("\n").toLowerCase();
    return words.every((word) => all.includes(word));
  });
}

function asObject(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}
